"""What became of each row of a file: none vanishes without a word."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from pollex.errors import PollexError
from pollex.text import format_count


class HasSource(Protocol):
    """Anything that was read from a file."""

    @property
    def source(self) -> str: ...


RowT = TypeVar("RowT", bound=HasSource)

ROW_OUTCOME_TURNS = "turns"
"""Rows with what somebody said: turns, exchanges, or whole conversations."""
ROW_OUTCOME_LABELS = "labels"
"""Rows with thumbs, scores or comments alone."""
ROW_OUTCOME_ABOUT_CONVERSATIONS = "beside"
"""Rows that say something about conversations, or are steps without words."""
ROW_OUTCOME_REPEATED = "repeated"
"""Rows that say again what another one says, or an earlier moment of it."""
ROW_OUTCOME_REPLACED_BY_SAME_ID = "overruled"
"""Rows in whose place another one of the same id counts."""
ROW_OUTCOME_UNREADABLE = "bad"
"""Rows from which nothing could be read; each has its line and reason."""
ROW_OUTCOME_LEFT_OUT_BY_USER = "left out"
"""Rows that the user said are no turns."""
ROW_OUTCOMES = (
    ROW_OUTCOME_TURNS,
    ROW_OUTCOME_LABELS,
    ROW_OUTCOME_ABOUT_CONVERSATIONS,
    ROW_OUTCOME_REPEATED,
    ROW_OUTCOME_REPLACED_BY_SAME_ID,
    ROW_OUTCOME_UNREADABLE,
    ROW_OUTCOME_LEFT_OUT_BY_USER,
)


class RowOutcomeCounter:
    """Counts the rows of each file where they come in, and where something has become of them."""

    def __init__(self) -> None:
        self._read: Counter[str] = Counter()
        self._became: dict[str, Counter[str]] = {}

    def count_in(self, rows: Iterable[RowT]) -> Iterator[RowT]:
        """Yield rows, and count them by file."""
        source = ""
        number = 0
        try:
            for row in rows:
                # counters change once a file: this runs for each row
                if row.source != source:
                    self._read[source] += number
                    source = row.source
                    number = 0

                number += 1
                yield row
        finally:
            # rows of the last file, also where reading stops early
            self._read[source] += number

    def add(self, source: str, outcome: str, rows: int = 1) -> None:
        """Count rows that have become something."""
        if rows:
            self._became.setdefault(source, Counter())[outcome] += rows

    def check(self) -> Mapping[str, Mapping[str, int]]:
        """Return what became of the rows of each file.

        Raises:
            PollexError: More or fewer rows have become something than were read, which is a fault
                of ours.
        """
        for source in self._read.keys() | self._became.keys():
            lost = self._read[source] - self._became.get(source, Counter()).total()
            if lost:
                rows = format_count(abs(lost), "row was", "rows were")
                what = f"{rows} {'lost' if lost > 0 else 'read twice'} in reading"
                raise PollexError(
                    what,
                    where=source,
                    hint="report it, with some rows of this kind",
                )

        rows_by_source = {}
        for source in self._read:
            if source:
                rows_by_source[source] = dict(self._became.get(source, {}))
        return rows_by_source
