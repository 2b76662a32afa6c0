"""The screen of a verb, and how it runs, shows and ends a use case."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from pollex.graphs.hooks import name_stage
from pollex.text import (
    DATA_STYLE,
    JsonDict,
    NextCommand,
    TerminalLine,
    TerminalLines,
    TerminalTable,
    escape_controls,
    replace_nan_by_none,
)

T = TypeVar("T")

MAX_TABLE_WIDTH = 10_000
"""Columns of a table that is written to a file or a pipe."""

SECONDS_BETWEEN_PROGRESS_LINES = 60.0
"""Between lines of progress, where there is no terminal for bars."""


class ProgressBars:
    """One bar a stage, on standard error."""

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description:<26}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._bars = Progress(
            *columns,
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._stage = ""
        self._ended = threading.Event()

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """Add a bar for a stage, or change its total."""
        # a stage that begins again has another total, and the same bar
        if stage in self._tasks:
            self._bars.update(self._tasks[stage], total=total, completed=done)
        else:
            self._tasks[stage] = self._bars.add_task(
                name_stage(stage),
                total=total,
                completed=done,
            )
        # last: lines are printed by another thread, and only of a stage that has a bar
        self._stage = stage

    def advance(self, stage: str, by: int = 1) -> None:
        """Advance a stage's bar."""
        self._stage = stage
        self._bars.advance(self._tasks[stage], by)

    def _print_lines(self) -> None:
        """Print how far the latest stage is, once a minute, until the run ends."""
        while not self._ended.wait(SECONDS_BETWEEN_PROGRESS_LINES):
            # nothing has begun yet
            if not self._stage:
                continue
            self._bars.console.print(
                self._line_of(self._stage),
                markup=False,
                highlight=False,
                soft_wrap=True,
            )

    def _line_of(self, stage: str) -> str:
        """Return how far a stage is, as a line."""
        task = next(task for task in self._bars.tasks if task.id == self._tasks[stage])
        minutes = (task.elapsed or 0.0) / 60
        total = "" if task.total is None else f" of {task.total:,.0f}"
        return f"{task.description}: {task.completed:,.0f}{total} after {minutes:.0f} min"

    def note(self, text: str) -> None:
        """Print a line to the user, above the bars."""
        self._bars.console.print(
            escape_controls(text),
            markup=False,
            highlight=False,
            soft_wrap=True,
        )

    def pause(self) -> None:
        """Stop the bars during a conversation with the user."""
        self._bars.stop()

    def __enter__(self) -> Self:
        self._bars.start()
        # where there is no terminal for bars, lines come in their place, also while a stage is silent
        if self._bars.disable:
            threading.Thread(target=self._print_lines, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._bars.stop()


if TYPE_CHECKING:
    from pollex.services.results import Result

R = TypeVar("R", bound="Result")

DONE_EXIT_CODE = 0
PARTLY_DONE_EXIT_CODE = 3
STOPPING_MESSAGE = b"Stopping: answers on their way are still kept. Ctrl-C again ends at once.\n"


class Screen(ProgressBars):
    """The terminal: lines for the user, and the progress of a use case.

    Attributes:
        console: Lines for the user. Standard output, or standard error if the last line of output
            is JSON.
    """

    def __init__(
        self,
        *,
        as_json: bool = False,
        verbose: bool = False,
        apart: bool = False,
    ) -> None:
        # bars go to standard error, so that output can be piped
        super().__init__(Console(stderr=True))
        self.console = Console(stderr=as_json)
        self.verbose = verbose
        # notes stay out of output that is data
        self._aside = Console(stderr=as_json or apart)

    def say(self, text: str = "", style: str | None = None) -> None:
        """Print a line; see `print_line`."""
        print_line(self.console, text, style)

    def note(self, text: str) -> None:
        """Print a note of a use case."""
        print_line(self._aside, text, "yellow" if text.startswith("Note: ") else None)


def print_line(
    console: Console,
    text: str = "",
    style: str | None = None,
    limit: int | None = None,
) -> None:
    """Print one line: what is foreign in it can neither move the cursor nor begin a line of its own.

    Args:
        limit: Characters that are shown.
    """
    console.print(
        escape_controls(text, limit),
        style=style,
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def print_json(values: JsonDict) -> None:
    """Print one JSON object on the last line of standard output."""
    click.echo(json.dumps(replace_nan_by_none(values), ensure_ascii=True, allow_nan=False))


def announce_stop() -> None:
    """Print that an interrupt was received; never raise, since a signal handler calls it."""
    with suppress(OSError):
        os.write(2, STOPPING_MESSAGE)


def show_result(
    screen: Screen,
    parts: TerminalLines,
    typed: Callable[[NextCommand], str] = str,
) -> None:
    """Show a result in the words that it has for people.

    Args:
        typed: Spells a command.
    """
    for part in parts:
        if isinstance(part, TerminalTable):
            print_table(screen.console, make_table(part))
        elif isinstance(part, NextCommand):
            screen.say(part.before + typed(part))
        # the line, and what is known of it below
        elif isinstance(part, TerminalLine) and part.below:
            for text, style, indent in ((part.text, "", 2), (part.below, "dim", 4)):
                print_indented(
                    screen,
                    Text(escape_controls(text, part.limit), style),
                    indent,
                )
        # a program reads this: no markup and no line breaks
        elif isinstance(part, TerminalLine) and part.style == DATA_STYLE:
            click.echo(part.text)
        elif isinstance(part, TerminalLine):
            print_line(screen.console, part.text, part.style or None, part.limit)
        else:
            screen.say(part)


def print_indented(screen: Screen, text: Text, indent: int) -> None:
    """Print a line, which a terminal breaks between words and keeps indented."""
    if screen.console.is_terminal:
        screen.console.print(Padding(text, (0, 0, 0, indent)))
    else:
        screen.console.print(Text(" " * indent) + text, soft_wrap=True)


def print_table(console: Console, table: Table) -> None:
    """Print a table: as wide as the terminal, or in a file or a pipe as wide as it is."""
    if console.is_terminal:
        console.print(table)
        return

    # as wide as its widest row, and cut nowhere
    unbounded = console.options.update(max_width=MAX_TABLE_WIDTH)
    table.width = Measurement.get(console, unbounded, table).maximum
    console.print(table, crop=False)


def make_table(rows: TerminalTable) -> Table:
    """Make a table without borders."""
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
    )
    for number, column in enumerate(rows.columns):
        # foreign text is no markup
        table.add_column(Text(escape_controls(column)), no_wrap=number in rows.whole)

    for row in rows.rows:
        table.add_row(*map(make_cell, row))

    return table


def make_cell(value: object) -> Text:
    """Return a value as a cell: foreign text without markup and control characters."""
    if isinstance(value, TerminalLine):
        return Text(escape_controls(value.text, 200), value.style)
    if isinstance(value, float):
        return Text(f"{value:.3f}")
    return Text("" if value is None else escape_controls(f"{value}", 200))


def run_and_show(use_case: Callable[..., Result], *, as_json: bool) -> int:
    """Run a use case that lacks nothing but `progress`, show its result or print JSON, and return the exit code."""
    with Screen(as_json=as_json) as screen:
        result = use_case(progress=screen)

    show_result(screen, result.told())
    if as_json:
        print_json(result.as_json())

    return DONE_EXIT_CODE if result.complete else PARTLY_DONE_EXIT_CODE
