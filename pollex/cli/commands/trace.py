"""`pollex trace`: what a run did."""

from __future__ import annotations

from functools import partial

import click

from pollex.cli import session as cli
from pollex.cli.options import with_store
from pollex.services.options import RunOptions


@click.command("trace")
@click.argument("run_id", metavar="RUN")
@click.option("--conversation", metavar="ID", help="Show everything that happened to this conversation.")
@click.option("--reveal", is_flag=True, help="Show what the placeholders of this conversation stand for.")
@with_store
def command(run_id: str, conversation: str | None, reveal: bool, run: RunOptions) -> int:
    """Show every node and role call of a run as a tree.

    RUN is an id, its beginning, or `last`.

    \b
    Examples
      pollex trace last
      pollex trace learn-3 --conversation debug-017
      pollex trace last --conversation debug-017 --reveal
    """
    from pollex.cli.trace_output import show_conversation, show_run
    from pollex.services.history import trace_conversation, trace_run

    if conversation is None:
        return cli.run(partial(trace_run, run, run_id), show_run, as_json=run.as_json, apart=True)
    use_case = partial(trace_conversation, run, run_id, conversation, reveal=reveal)
    return cli.run(use_case, show_conversation, as_json=run.as_json, apart=True)
