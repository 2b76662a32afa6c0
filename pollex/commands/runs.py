"""`pollex runs`: what ran."""

from __future__ import annotations

import click

from pollex.terminal.options import RunOptions, with_store


@click.command("runs")
@with_store
def command(run: RunOptions) -> None:
    """List all runs, the last one last.

    \b
    Examples
      pollex runs
      pollex runs --json | jq '.runs[-1].id'
    """
    from pollex.terminal.looking import show_runs

    show_runs(run)
