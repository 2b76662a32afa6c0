"""`pollex trace`: what a run did."""

from __future__ import annotations

import click

from pollex.cli.options import with_store
from pollex.services.options import RunOptions


@click.command("trace")
@click.argument("run_id", metavar="RUN")
@click.option("--conversation", metavar="ID", help="Everything that happened to one conversation.")
@with_store
def command(run_id: str, conversation: str | None, run: RunOptions) -> None:
    """Show every node and role call of a run as a tree, with counts, durations and errors.

    RUN is an id, its beginning, or `last`.

    \b
    Examples
      pollex trace last
      pollex trace learn-3 --conversation debug-017
    """
    from pollex.cli.trace_output import show_conversation, show_run

    if conversation is None:
        show_run(run, run_id)
    else:
        show_conversation(run, run_id, conversation)
