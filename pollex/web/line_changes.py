"""Two texts beside each other, line by line: what came, what went, and what stayed around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

LINES_AROUND = 2
"""Lines that stay and are shown around those that changed."""
MAX_COMPARED_LINES = 2000
"""Lines of a text that are compared; of longer ones the rest isn't shown."""


@dataclass(frozen=True)
class LineChange:
    """A line of two texts.

    Attributes:
        kind: `ins` in the new text alone, `del` in the old one alone, `same` in both, `gap` for
            lines that are left out.
    """

    kind: Literal["ins", "del", "same", "gap"]
    text: str = ""


def list_line_changes(old: str, new: str) -> list[LineChange]:
    """Return the lines of two texts as a diff has them; none where they are the same."""
    before = old.splitlines()[:MAX_COMPARED_LINES]
    after = new.splitlines()[:MAX_COMPARED_LINES]
    # lines that occur often, such as empty ones, count like all others
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    groups = list(matcher.get_grouped_opcodes(LINES_AROUND))
    changes: list[LineChange] = []
    for group in groups:
        # lines between this group and what stands before it are left out
        if group[0][1] > 0:
            changes.append(LineChange("gap"))
        for kind, *places in group:
            changes += _iterate_stretch(
                kind,
                before[places[0] : places[1]],
                after[places[2] : places[3]],
            )

    return changes


def _iterate_stretch(
    kind: str, before: Sequence[str], after: Sequence[str]
) -> Iterator[LineChange]:
    """Yield the lines of one stretch: those that went before those that came."""
    if kind == "equal":
        for line in before:
            yield LineChange("same", line)
        return

    for line in before:
        yield LineChange("del", line)

    for line in after:
        yield LineChange("ins", line)
