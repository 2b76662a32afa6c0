"""`pollex inspect`: what files of logs hold."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli
from pollex.cli.options import logs_argument, with_reading

if TYPE_CHECKING:
    from pollex.cli.session import Screen
    from pollex.formats.fields import ReadOptions
    from pollex.services.exchange import Inspection


@click.command("inspect")
@logs_argument
@with_reading
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
def command(logs: tuple[str, ...], reading: ReadOptions, as_json: bool) -> int:
    """Tell what files hold: their formats, conversations and thumbs, and which other scores there are.

    \b
    Examples
      pollex inspect export.json
      pollex inspect spans.jsonl annotations.jsonl
    """
    from pollex.services.exchange import inspect_logs

    return cli.run(partial(inspect_logs, logs, reading=reading), show, as_json=as_json)


def show(screen: Screen, found: Inspection) -> None:
    """Print formats, ways, and scores with their sources."""
    for name, rows in found.account.formats.items():
        screen.say(f"{rows} rows of {name}")
    if not found.account.formats:
        screen.say("rows of a general format")
    for way, conversations in found.account.ways.items():
        screen.say(f"{conversations} conversations put together as: {way}")
    shortest, middle, longest = found.turns
    screen.say(f"turns: {shortest} to {longest}, half have up to {middle}")
    for kind in found.account.scores:
        name = f"score {kind.name!r}" if kind.name else "thumbs of the tool"
        source = f" from {kind.source}" if kind.source else ""
        screen.say(f"{kind.scores} × {name}{source}{': the thumb' if kind.taken else ''}")
