"""Labels of conversations that chance drew, after they had been labeled for another reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pollex.store.store import Store
from pollex.store.tables import LabelRow, QueueRow, Row, SheetRow

RANDOM = "random"

_LAST = """
    SELECT b.annotator, b.text_hash, b.conversation, b.run, b.question, b.value, b.source, b.id, s.lease, s.skip,
        s.comment, s.shown_ms, s.took_ms, max(s.rowid)
    FROM leases AS l JOIN sheets AS s ON s.lease = l.id JOIN labels AS b ON b.id = s.label
    WHERE l.queue = ? AND l.drawn <> 'repeat' GROUP BY l.id, b.question ORDER BY s.rowid
"""
COPIED = ("annotator", "text_hash", "conversation", "run", "question", "value", "source")


def adopted(store: Store, queue: QueueRow, texts: Collection[str]) -> Iterator[Row]:
    """Yield the last answers about texts of a queue once more, as those of conversations drawn at random.

    Chance draws from all of a run. If it left out what was labeled for being doubtful, the rest would look surer than
    the run is.
    """
    for row in store.rows(_LAST, [queue.id]) if texts else []:
        if row["text_hash"] in texts:
            label = LabelRow(**{name: row[name] for name in COPIED}, drawn=RANDOM)
            told = row["skip"], row["comment"], row["id"], row["shown_ms"], row["took_ms"]
            yield from (label, SheetRow(label.id, row["lease"], queue.id, *told))
