"""`pollex doctor`: what is installed, and what works."""

from __future__ import annotations

import click

from pollex.cli import session as cli
from pollex.cli.options import MODEL, with_store
from pollex.services.options import RunOptions


@click.command("doctor")
@MODEL[0]
@MODEL[1]
@click.option("--rebuild", is_flag=True, help="Rebuild a damaged store's database, or bring an earlier pollex's over.")
@with_store
def command(run: RunOptions, model: str | None, base_url: str | None, rebuild: bool) -> int:
    """Check the installation, the embedding weights, the store and a model's endpoint.

    An endpoint is asked up to some fifteen questions of about 30 tokens.

    \b
    Examples
      pollex doctor
      pollex doctor --json
      pollex doctor --model MODEL
      pollex doctor --model qwen3 --base-url http://localhost:8000/v1
      pollex doctor --rebuild
    """
    from pollex.cli.output import show_health
    from pollex.services.doctor import doctor
    from pollex.services.options import ModelOptions

    with cli.Screen(as_json=run.as_json, apart=True) as screen:
        health = doctor(run, ModelOptions(model=model, base_url=base_url), screen, rebuild=rebuild)
    show_health(screen, health)
    if run.as_json:
        cli.print_json(health.as_json())
    return 0 if health.well else 1
