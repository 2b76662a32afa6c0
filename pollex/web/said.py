"""What people say on pages, kept once: a form that is sent again, or a key that is held down, says nothing new."""

from collections.abc import Sequence

from pollex.store.store import Store
from pollex.store.tables import LabelRow, LabelSheetRow

LAST_ANSWER_QUERY = """
    SELECT l.id, l.value, s.lease, s.skip, s.comment FROM labels AS l JOIN sheets AS s ON s.label = l.id
    WHERE l.annotator = ? AND l.text_hash = ? AND l.run = ? AND l.question = ? AND l.source = ?
    ORDER BY l.rowid DESC LIMIT 1
"""


def keep_new_answers(store: Store, answers: Sequence[tuple[LabelRow, LabelSheetRow]]) -> list[str]:
    """Keep answers that aren't what their person said last; return the ids of the labels that count.

    Whoever calls it holds the site's turn: two that are sent at once come one after the other.
    """
    ids = list[str]()
    new = list[LabelRow | LabelSheetRow]()
    for label, sheet in answers:
        # what the same person said last to the same question about the same text
        about = [label.annotator, label.text_hash, label.run, label.question, label.source]
        last = next(iter(store.rows(LAST_ANSWER_QUERY, about)), None)
        # what is sent twice is kept once
        same = (label.value, sheet.lease, sheet.skip, sheet.comment)
        if (
            last is not None
            and (last["value"], last["lease"], last["skip"], last["comment"]) == same
        ):
            ids.append(last["id"])
        else:
            ids.append(label.id)
            new += [label, sheet]

    if new:
        store.keep(new)

    return ids
