"""`pollex doctor`: what is installed, and what works."""

from __future__ import annotations

import click

from pollex.terminal.options import RunOptions, with_store


@click.command("doctor")
@with_store
def command(run: RunOptions) -> int:
    """Check what is installed, the embedding weights and the store.

    \b
    Examples
      pollex doctor
      pollex doctor --json
    """
    from pollex.terminal.health import examine

    return examine(run)
