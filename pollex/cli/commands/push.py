"""`pollex push`: scores to a tool's interface."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli

if TYPE_CHECKING:
    from pollex.cli.session import Screen
    from pollex.services.transfer import Transferred

COST = "LangSmith may keep traces longer that get feedback, which can cost more. Send it?"


@click.command("push")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--to", required=True, metavar="TOOL", help="langfuse, langsmith, phoenix, mlflow, opik or otel.")
@click.option("--yes", is_flag=True, help="Send without asking for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
def command(file: Path, to: str, yes: bool, as_json: bool) -> int:
    """Send scores that `pollex score --as TOOL` wrote to that tool.

    Sending the file again updates the scores.

    \b
    Example
      pollex score traces.jsonl --rubrics rubrics.json --as langfuse --out scores.json
      pollex push scores.json --to langfuse
    """
    from pollex.services.transfer import push

    if to == "langsmith" and not yes:
        click.confirm(COST, abort=True, err=True)
    return cli.run(partial(push, file, to=to), show, as_json=as_json)


def show(screen: Screen, made: Transferred) -> None:
    """Print how many requests were sent."""
    screen.say(f"Sent {made.rows['requests']} requests of {made.file} to {made.tool}")
