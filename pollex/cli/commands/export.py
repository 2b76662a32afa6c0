"""`pollex export`: a rubric set in another tool's form."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli

if TYPE_CHECKING:
    from pollex.cli.session import Screen
    from pollex.services.exchange import Exported


@click.command("export")
@click.argument("rubrics", type=click.Path(path_type=Path))
@click.option(
    "--to",
    required=True,
    metavar="TOOL",
    help="Tool: autorubric, deepeval, inspect, langfuse, langsmith, mlflow, openevals, phoenix, promptfoo or ragas.",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Output folder for the files.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
def command(rubrics: Path, to: str, out: Path, as_json: bool) -> int:
    """Write a rubric set as files of another tool.

    NetSAT is included if the tool can compute it.

    \b
    Examples
      pollex export rubrics.json --to promptfoo --out evals
      pollex export rubrics.json --to openevals --out evaluators
    """
    from pollex.services.exchange import export_rubrics

    return cli.run(partial(export_rubrics, rubrics, to=to, out=out), show, as_json=as_json)


def show(screen: Screen, made: Exported) -> None:
    """Print the files, how the tool comes to NetSAT, and what it can't say."""
    for path in made.files:
        screen.say(f"Wrote {path}")
    screen.say(f"NetSAT in {made.target.name} ({made.target.version}): {made.target.netsat}")
    for note in made.notes:
        screen.note(f"Note: {note}")
