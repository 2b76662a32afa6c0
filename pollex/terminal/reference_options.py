"""Options of `pollex judge --reference`; the values arrive as `referencing: ReferenceOptions`, or None without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from pollex.terminal.options import F, family

PROFILE = "chinese"


@dataclass(frozen=True)
class ReferenceOptions:
    """What a user may choose beside questions, answers and model.

    Attributes:
        profile: A bundled profile's name or a file.
        plain: Whether a judge without references grades, too.
        human: Files of people's grades.
        human_field: Their field's name, in those files, or else in the questions' or answers'.
        category_field: The field of the task's category, or type.
        page: Where the page goes; beside the grades when left out.
    """

    profile: str = PROFILE
    plain: bool = False
    human: tuple[str, ...] = ()
    human_field: str | None = None
    category_field: str | None = None
    page: Path | None = None


REFERENCING: list[Callable[[Any], Any]] = [
    click.option("--reference", is_flag=True, help="Grade answers against the references in LOGS; see above."),
    click.option(
        "--profile",
        default=PROFILE,
        show_default=True,
        metavar="NAME|FILE",
        help="With --reference: scale, rules and dimensions; chinese, english, or a TOML file.",
    ),
    click.option("--plain", is_flag=True, help="With --reference: grade without references too, to compare."),
    click.option("--human", multiple=True, metavar="FILE", help="With --reference: people's grades, by id."),
    click.option("--human-field", metavar="FIELD", help="With --reference: field of people's grades."),
    click.option(
        "--category-field",
        metavar="FIELD",
        help="With --reference: field of the task's category, or type; else `category`.",
    ),
    click.option("--page", type=click.Path(path_type=Path), help="With --reference: the page; else beside --out."),
]


def with_referencing(command: F) -> F:
    """Adds the options of grading against references."""
    return family(command, REFERENCING, "referencing", _reference_options)


def _reference_options(*, reference: bool, **given: Any) -> ReferenceOptions | None:
    return ReferenceOptions(**given) if reference else None
