"""The screen of a verb, and how it runs, shows and ends a use case."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console

from pollex.cli.progress import Bars
from pollex.text import printable

if TYPE_CHECKING:
    from pollex.services.results import Result

R = TypeVar("R", bound="Result")

DONE, PARTLY = 0, 3
STOPPING = b"Stopping: answers on their way are still kept. Ctrl-C again ends at once.\n"


class Screen(Bars):
    """The terminal: lines for the user, and the progress of a use case.

    Attributes:
        console: Lines for the user. Standard output, or standard error if the last line of output is JSON.
    """

    def __init__(self, *, as_json: bool = False, verbose: bool = False, apart: bool = False) -> None:
        super().__init__(Console(stderr=True))
        self.console = Console(stderr=as_json)
        self.verbose = verbose
        self._aside = Console(stderr=as_json or apart)

    def say(self, text: str = "", style: str | None = None) -> None:
        """Print a line; see `say`."""
        say(self.console, text, style)

    def note(self, text: str) -> None:
        """Print a note of a use case."""
        say(self._aside, text, "yellow" if text.startswith("Note: ") else None)


def say(console: Console, text: str = "", style: str | None = None, limit: int | None = None) -> None:
    """Print one line: what is foreign in it can neither move the cursor nor begin a line of its own.

    Args:
        limit: Characters that are shown.
    """
    console.print(printable(text, limit), style=style, markup=False, highlight=False, soft_wrap=True)


def print_json(values: dict[str, Any]) -> None:
    """Print one JSON object on the last line of standard output."""
    click.echo(json.dumps(values, ensure_ascii=True, allow_nan=False))


def announce_stop() -> None:
    """Print that an interrupt was received; never raise, since a signal handler calls it."""
    with suppress(OSError):
        os.write(2, STOPPING)
