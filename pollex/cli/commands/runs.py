"""`pollex runs`: what ran."""

from __future__ import annotations

import click

from pollex.cli.options import with_store
from pollex.services.options import RunOptions


@click.command("runs")
@with_store
def command(run: RunOptions) -> None:
    """List all runs, the last one last.

    \b
    Examples
      pollex runs
      pollex runs --json | jq '.runs[-1].id'
    """
    from pollex.cli.trace_output import show_runs

    show_runs(run)
