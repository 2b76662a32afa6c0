"""How logs are to be read, where their own form doesn't tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from pollex.errors import WrongUse

OnDuplicate = Literal["error", "first", "last"]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the command line's options of the same names say; None leaves it to the usual names.

    Attributes:
        id_field: A name, or a path with dots such as `metadata.session`; so for the other fields.
        label_field: The thumb, or a rating.
        judge_field: Who gave the label.
        group_field: What must stay on one side of a split.
        messages_field: The list of turns.
        positive: What counts as positive: a comparison (`>=4`) or spellings separated by commas (`solved,great`).
        negative: Likewise.
        category_field: Of questions: the category of the task, or its type's own name; no path.
        max_bad: How many bad rows are put up with.
        encoding: Of text files.
        on_duplicate: What to do with different conversations under one id: stop, or keep the first or the last.
        max_turn_chars: A conversation with a longer turn is kept, and marked `too_large`.
    """

    id_field: str | None = None
    label_field: str | None = None
    judge_field: str | None = None
    group_field: str | None = None
    messages_field: str | None = None
    positive: str | None = None
    negative: str | None = None
    category_field: str | None = None
    max_bad: int = 0
    encoding: str = "utf-8-sig"
    on_duplicate: OnDuplicate = "error"
    max_turn_chars: int = 1_000_000

    def __post_init__(self) -> None:
        if self.on_duplicate not in get_args(OnDuplicate):
            choices = ", ".join(get_args(OnDuplicate))
            raise WrongUse(f"--on-duplicate {self.on_duplicate} isn't known", remedy=f"one of: {choices}")
        if self.max_bad < 0 or self.max_turn_chars < 1:
            raise WrongUse("--max-bad is negative or the turn limit below 1", remedy="give a count")
