"""`pollex why`: where a rubric came from."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from pollex.cli import session as cli
from pollex.cli.options import with_store
from pollex.services.options import RunOptions


@click.command("why")
@click.argument("rubrics", type=click.Path(path_type=Path))
@click.argument("rubric_id")
@with_store
def command(rubrics: Path, rubric_id: str, run: RunOptions) -> int:
    """Show a rubric's reasons, their quotes, and the conversations that they are from.

    Turns are numbered from 0, those of the system and of tools too.

    \b
    Examples
      pollex why rubrics.json 815baeb75b41
      pollex why rubrics.json 815b                         the beginning of an id will do
    """
    from pollex.cli.trace_output import show_why
    from pollex.services.history import explain_rubric

    return cli.run(partial(explain_rubric, run, rubrics, rubric_id), show_why, as_json=run.as_json, apart=True)
