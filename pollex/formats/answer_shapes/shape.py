"""The definition of a table's shape, and the records made of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Side = Literal["answers", "judgments"]


class Row(Protocol):
    """One row of a file, and its place."""

    @property
    def source(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def fields(self) -> Mapping[str, Any]: ...


@dataclass
class Records:
    """Records of one or several files as parallel lists, each `[record]`.

    Attributes:
        text: Ids.
        question: Ids.
        judge: Names; None for nobody known. Empty for answers.
        option: Value of the option, or of the answer that a judge gave, as the file has it.
        probability: As the file has it. Empty for judgments.
        row: Which of `rows` each is from.
        rows: The files' rows.
        groups: By column, the value of each row of `rows`.
        nominal: Questions that the shape knows to be without an order.
        blank: Rows of `rows` that have an empty cell where an answer should be.
    """

    text: list[str] = field(default_factory=list)
    question: list[str] = field(default_factory=list)
    judge: list[str | None] = field(default_factory=list)
    option: list[Any] = field(default_factory=list)
    probability: list[Any] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    nominal: frozenset[str] = frozenset()
    blank: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.text)

    def where(self, record: int) -> str:
        """File and line."""
        return place_of(self.rows[self.row[record]])

    def describe(self, record: int) -> str:
        """Describe a record with its place."""
        about = f"{self.text[record]}, {self.question[record]}"
        if self.judge:
            return f"{self.where(record)} ({about}, judge {self.judge[record]}: {self.option[record]})"
        return f"{self.where(record)} ({about}, option {self.option[record]}: {self.probability[record]})"

    def joined(self, other: Records) -> Records:
        """Append the records of another file."""
        shift = len(self.rows)
        groups = {
            name: [*self.groups.get(name, [""] * shift), *other.groups.get(name, [""] * len(other.rows))]
            for name in dict.fromkeys([*self.groups, *other.groups])
        }
        return Records(
            text=self.text + other.text,
            question=self.question + other.question,
            judge=self.judge + other.judge,
            option=self.option + other.option,
            probability=self.probability + other.probability,
            row=self.row + [shift + row for row in other.row],
            rows=self.rows + other.rows,
            groups=groups,
            nominal=self.nominal | other.nominal,
            blank=self.blank + [shift + row for row in other.blank],
        )


@dataclass(frozen=True)
class Shape:
    """One shape of tables.

    Attributes:
        name: For people.
        columns: What each side's table has, for people.
        recognises: Whether a row's fields have this shape. No two shapes recognise the same.
        answers: Records of a table of answers.
        judgments: Records of a table of judgments; None where the shape has only answers.
    """

    name: str
    columns: Mapping[Side, str]
    recognises: Callable[[Mapping[str, Any], Side], bool]
    answers: Callable[[Sequence[Row]], Records]
    judgments: Callable[[Sequence[Row]], Records] | None = None

    def records(self, rows: Sequence[Row], side: Side) -> Records:
        """Make the records of a table of this side."""
        make = self.answers if side == "answers" else self.judgments
        assert make is not None, "what a shape recognises it can read"
        return make(rows)


def place_of(row: Row) -> str:
    """File and line."""
    return f"{row.source}:{row.line}"


def name(value: Any) -> str:
    """Convert an id to text; a missing one is empty."""
    return "" if value is None else str(value).strip()
