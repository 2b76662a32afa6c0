"""How far annotators' labels of texts agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from pollex.formats.questionnaires import SheetQuestion
from pollex.measures.intervals import Figure
from pollex.services.precision import agreement
from pollex.store.labels import VOLUNTARY, Opinion, opinions
from pollex.store.store import Store
from pollex.web.questions import questions_of


def asked_about(store: Store) -> list[str]:
    """Return the questions that people answered, thumbs first."""
    sql = "SELECT question, min(rowid) AS first FROM labels WHERE annotator <> '' GROUP BY question ORDER BY first"
    found = [str(row["question"]) for row in store.rows(sql)]
    return sorted(found, key=lambda question: question != "thumb")


def sheet_questions(store: Store) -> dict[str, SheetQuestion]:
    """Return the questions of all queues' sheets by id, as they were asked last."""
    rows = store.rows("SELECT sheet FROM queues WHERE sheet <> '' ORDER BY rowid")
    return {one.id: one for row in rows for one in questions_of(row["sheet"])}


def with_oneself(store: Store, question: str, annotator: str = "") -> Figure:
    """Compute how far people, or one of them, agree with themselves on texts that they were shown twice."""
    again = [one for one in said_about(store, question, again=True) if annotator in ("", one.annotator)]
    seen = {(one.annotator, one.text_hash) for one in again}
    first = [one for one in said_about(store, question) if (one.annotator, one.text_hash) in seen]
    # A text of one person is a unit of its own: whether two people agree is another question.
    both = [replace(one, annotator=side, text_hash=f"{one.annotator} {one.text_hash}")
            for side, said in (("first", first), ("again", again)) for one in said]  # fmt: skip
    return agreement(both)


def said_about(store: Store, question: str, *, again: bool = False) -> list[Opinion]:
    """Return `opinions` with the answers to a question without an order as words."""
    sheets = store.rows("SELECT sheet FROM queues WHERE sheet <> ''")
    asked = [one for row in sheets for one in questions_of(row["sheet"]) if one.id == question]
    found = opinions(store, question, again=again)
    return found if all(one.ordinal for one in asked) else [replace(one, value=str(one.value)) for one in found]


def people_in(said: Sequence[Opinion]) -> list[Opinion]:
    """Return people's opinions, without those of who had seen the score."""
    return [one for one in said if one.source == "person" and one.drawn != VOLUNTARY]


def between(of: Sequence[Opinion]) -> list[tuple[str, str, Figure]]:
    """Compute the agreement of each pair of annotators."""
    people = sorted({one.annotator for one in of})
    return [(a, b, agreement([one for one in of if one.annotator in (a, b)])) for a, b in combinations(people, 2)]


def disputed(of: Sequence[Opinion]) -> dict[str, list[Opinion]]:
    """Return, by text, differing answers that are not adjudicated yet."""
    decided = {one.text_hash for one in of if one.source == "adjudicated"}
    by_text: dict[str, list[Opinion]] = defaultdict(list)
    for one in of:
        if one.source == "person" and one.drawn != VOLUNTARY and one.text_hash not in decided:
            by_text[one.text_hash].append(one)
    return {text: said for text, said in by_text.items() if len({one.value for one in said}) > 1}
