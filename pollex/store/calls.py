"""Where the raw answers of paid calls stand in the journal."""

from __future__ import annotations

import re

from pollex.store.journal import Entry, Place

# Rows are written with their columns in order, so the beginning of one tells all that the index needs.
_ROW = re.compile(r'\{"key":"([^"\\]+)","kind":"(intent|result)","attempt":(\d+)')


class CallIndex:
    """Key → place of the last result, in memory; the answers stay in the journal.

    Attributes:
        unresolved: Key and attempt of each intent without a result: calls that may have been billed without an answer.
    """

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self.unresolved: set[tuple[str, int]] = set()

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: str) -> Place | None:
        """Where the result of `key` stands; None when there is none."""
        return self._places.get(key)

    def note(self, entry: Entry, place: Place) -> None:
        """Takes notice of a journal entry."""
        if entry.table != "ledger" or (match := _ROW.match(entry.row)) is None:
            return
        key, kind, attempt = match[1], match[2], int(match[3])
        if kind == "result":
            self._places[key] = place
            self.unresolved.discard((key, attempt))
        else:
            self.unresolved.add((key, attempt))
