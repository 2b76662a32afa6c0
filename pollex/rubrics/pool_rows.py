"""The pool of rubrics as a person sees and edits it: rows of JSON, in the state and at `review_pool`."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pollex.errors import BadRubrics
from pollex.rubrics.rubric import Polarity, Rubric, content_id

Row = Mapping[str, Any]
REMEDY = "give each rubric once, with its text and a polarity, sat or dsat"


def row_of(rubric: Rubric, quoted: bool = True) -> dict[str, Any]:
    """Return a rubric as a row: its text and side may be edited, the rest tells where it comes from."""
    about = {"id": rubric.id, "text": rubric.text, "polarity": rubric.polarity, "source": rubric.source}
    quote = rubric.quotes[0].text if rubric.quotes and quoted else ""
    return about | {"reasons": len(rubric.reason_ids), "quote": quote}


def edited_pool(rows: object, known: Sequence[Rubric]) -> tuple[Rubric, ...]:
    """Return the rubrics of edited rows: those that stayed with their reasons, others as a person's own words.

    Args:
        known: The rubrics that the rows may name; of those with one id the last counts.

    Raises:
        BadRubrics: One is a duplicate, empty, or the reverse of another; or none is left.
    """
    if not isinstance(rows, list) or not rows:
        raise BadRubrics("the pool has no rubric left", remedy="leave one at least")
    by_id, seen = {rubric.id: rubric for rubric in known}, dict[str, str]()
    by_words = {(words_of(rubric.text), rubric.polarity): rubric for rubric in known}
    if len(stayed := {row["id"]: by_id[row["id"]] for row in rows if _stays(row, by_id)}) == len(rows):
        return tuple(stayed.values())
    kept = []
    for number, row in enumerate(rows, start=1):
        text, side = _read(row, f"rubric {number}")
        if (other := seen.setdefault(text.casefold(), side)) != side:
            raise BadRubrics(f"{text!r} is both {other} and {side}", where=f"rubric {number}", remedy=REMEDY)
        made = Rubric(id=content_id("rubric", side, text), text=text, polarity=side)
        kept.append(by_words.get((text, side), made))
    words = [one.text.casefold() for one in kept]
    if twice := [one.text for number, one in enumerate(kept) if words[number] in words[:number]]:
        raise BadRubrics(f"{twice[0]!r} stands there twice", remedy=REMEDY)
    return tuple(kept)


def words_of(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())


def _stays(row: object, by_id: Mapping[str, Rubric]) -> bool:
    """Return whether a row is a known rubric as it was."""
    before = by_id.get(str(row.get("id"))) if isinstance(row, Mapping) else None
    return (
        before is not None
        and isinstance(row, Mapping)
        and (before.text, before.polarity)
        == (
            row.get("text"),
            row.get("polarity"),
        )
    )


def _read(row: object, where: str) -> tuple[str, Polarity]:
    text = words_of(str(row.get("text") or "")) if isinstance(row, Mapping) else ""
    if not isinstance(row, Mapping) or not text:
        raise BadRubrics("a rubric without text", where=where, remedy=REMEDY)
    if (side := row.get("polarity")) not in get_args(Polarity):
        raise BadRubrics(f"a polarity of {side!r}", where=where, remedy=REMEDY)
    return text, side  # type: ignore[return-value]
