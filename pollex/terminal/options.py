"""Options that several verbs have, each family one decorator; the values arrive as one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from pollex.conversations.options import ReadOptions

F = TypeVar("F", bound=Callable[..., Any])

READING = [
    click.option("--id-field", metavar="FIELD", help="Field of the conversation's id; dots reach inside."),
    click.option("--label-field", metavar="FIELD", help="Field of the thumb or rating."),
    click.option("--judge-field", metavar="FIELD", help="Field of who gave the label."),
    click.option(
        "--group-field", metavar="FIELD", help="Field of what must stay on one side of a split, e.g. user_id."
    ),
    click.option("--messages-field", metavar="FIELD", help="Field of the turns."),
    click.option("--positive", metavar="RULE", help="What is a thumb up: '>=4', or spellings as 'solved,great'."),
    click.option("--negative", metavar="RULE", help="What is a thumb down: '<=2', or spellings."),
    click.option("--max-bad", default=0, show_default=True, metavar="N", help="Bad rows to put up with."),
    click.option("--encoding", default="utf-8-sig", show_default=True, help="Of text files."),
    click.option(
        "--on-duplicate",
        type=click.Choice(["error", "first", "last"]),
        default="error",
        show_default=True,
        help="Different conversations under one id.",
    ),
]
"""Fields of `ReadOptions`, under their names."""


def with_reading(command: F) -> F:
    """Adds the options of reading logs; they arrive as `reading: ReadOptions`."""
    return _family(command, READING, "reading", _read_options)


def _read_options(**given: Any) -> ReadOptions:
    from pollex.conversations.options import ReadOptions

    return ReadOptions(**given)


@dataclass(frozen=True)
class RunOptions:
    """Where a run is kept, and how it speaks."""

    store: Path
    as_json: bool
    resume: bool


RUN = [
    click.option(
        "--store",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path(".pollex"),
        envvar="POLLEX_STORE",
        show_default=True,
        help="Folder of all that is kept.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line."),
    click.option("--resume", is_flag=True, help="Go on with the last run of this command that didn't end."),
]


def with_run(command: F) -> F:
    """Adds the options of runs; they arrive as `run: RunOptions`."""
    return _family(command, RUN, "run", RunOptions)


def with_store(command: F) -> F:
    """Adds the options of looking at runs, as `run: RunOptions`."""
    return _family(command, RUN[:2], "run", lambda **given: RunOptions(**given, resume=False))


def _family(command: F, options: list[Callable[[Any], Any]], name: str, make: Callable[..., Any]) -> F:
    """Gathers a family's values into one argument of the command."""

    @wraps(command)
    def gathered(**values: Any) -> Any:
        mine = {key: values.pop(key) for key in keys}
        return command(**values, **{name: make(**mine)})

    decorated = gathered
    for option in reversed(options):
        decorated = option(decorated)
    parameters: list[click.Parameter] = decorated.__click_params__[-len(options) :]  # type: ignore[attr-defined]
    keys = [parameter.name for parameter in parameters]
    return decorated  # type: ignore[return-value]


logs_argument = click.argument("logs", nargs=-1, required=True, metavar="LOGS…")
rubrics_option = click.option(
    "--rubrics", type=click.Path(path_type=Path), required=True, help="A rubric set that `pollex learn` wrote."
)
