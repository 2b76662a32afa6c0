"""`pollex doctor`: what is installed, and what works."""

from __future__ import annotations

import click

from pollex.cli.options import MODEL, with_store
from pollex.services.options import RunOptions


@click.command("doctor")
@MODEL[0]
@MODEL[1]
@click.option("--rebuild", is_flag=True, help="Make a damaged store anew from what was paid for and what people said.")
@with_store
def command(run: RunOptions, model: str | None, base_url: str | None, rebuild: bool) -> int:
    """Check what is installed, the embedding weights, the store and, with --model, what its endpoint can do.

    An endpoint is asked up to some fifteen questions of about 30 tokens.

    \b
    Examples
      pollex doctor
      pollex doctor --json
      pollex doctor --model gpt-5-mini
      pollex doctor --model qwen3 --base-url http://localhost:8000/v1
      pollex doctor --rebuild
    """
    from pollex.cli.doctor import examine
    from pollex.services.options import ModelOptions
    from pollex.store.store import rebuild as make_anew

    if rebuild:
        for done in make_anew(run.store):
            click.echo(f"{done[0].upper()}{done[1:]}.", err=True)
    return examine(run, ModelOptions(model=model, base_url=base_url))
