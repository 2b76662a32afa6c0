"""`pollex runs`: what ran."""

from __future__ import annotations

from functools import partial

import click

from pollex.cli import session as cli
from pollex.cli.options import with_store
from pollex.services.options import RunOptions


@click.command("runs")
@with_store
def command(run: RunOptions) -> int:
    """List all runs, the last one last.

    \b
    Examples
      pollex runs
      pollex runs --json | jq '.runs[-1].id'
    """
    from pollex.cli.trace_output import show_runs
    from pollex.services.history import list_runs

    return cli.run(partial(list_runs, run), show_runs, as_json=run.as_json, apart=True)
