"""Results on a terminal: lines, tables, and commands that go on from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pollex.cli.session import DONE, PARTLY, Screen, print_json, say
from pollex.text import DATA, Command, Line, Rows, Told, printable

if TYPE_CHECKING:
    from pollex.services.results import Result


def show(screen: Screen, told: Told, typed: Callable[[Command], str] = str) -> None:
    """Show a result in the words that it has for people.

    Args:
        typed: Spells a command.
    """
    for one in told:
        if isinstance(one, Rows):
            screen.console.print(table_of(one))
        elif isinstance(one, Command):
            screen.say(one.before + typed(one))
        elif isinstance(one, Line) and one.below:
            for text, style, indent in ((one.text, "", 2), (one.below, "dim", 4)):
                show_indented(screen, Text(printable(text, one.limit), style), indent)
        elif isinstance(one, Line) and one.style == DATA:
            click.echo(one.text)
        elif isinstance(one, Line):
            say(screen.console, one.text, one.style or None, one.limit)
        else:
            screen.say(one)


def show_indented(screen: Screen, text: Text, indent: int) -> None:
    """Print a line, which a terminal breaks between words and keeps indented."""
    if screen.console.is_terminal:
        screen.console.print(Padding(text, (0, 0, 0, indent)))
    else:
        screen.console.print(Text(" " * indent) + text, soft_wrap=True)


def table_of(rows: Rows) -> Table:
    """Make a table without borders."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for number, column in enumerate(rows.columns):
        made.add_column(Text(printable(column)), no_wrap=number in rows.whole)
    for row in rows.rows:
        made.add_row(*map(cell, row))
    return made


def cell(value: object) -> Text:
    """Return a value as a cell: foreign text without markup and control characters."""
    if isinstance(value, Line):
        return Text(printable(value.text, 200), value.style)
    if isinstance(value, float):
        return Text(f"{value:.3f}")
    return Text("" if value is None else printable(f"{value}", 200))


def run(use_case: Callable[..., Result], *, as_json: bool) -> int:
    """Run a use case that lacks nothing but `progress`, show its result or print JSON, and return the exit code."""
    with Screen(as_json=as_json) as screen:
        result = use_case(progress=screen)
    show(screen, result.told())
    if as_json:
        print_json(result.as_json())
    return DONE if result.complete else PARTLY
