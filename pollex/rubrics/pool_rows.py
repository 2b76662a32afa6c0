"""The pool of rubrics as a person sees and edits it: rows of JSON, in the state and at `review_pool`."""

from __future__ import annotations

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
    if len(stayed := {row["id"]: row for row in rows if _stays(row, by_id)}) == len(rows):
        return tuple(by_id[id_] for id_ in stayed)
    kept = []
    for number, row in enumerate(rows, start=1):
        text, side = _read(row, f"rubric {number}")
        if (other := seen.setdefault(text.casefold(), side)) != side:
            raise BadRubrics(f"{text!r} is both {other} and {side}", where=f"rubric {number}", remedy=REMEDY)
        made = Rubric(id=content_id("rubric", side, text), text=text, polarity=side)
        kept.append(by_id[row["id"]] if _stays(row, by_id) else made)
    twice = [one for number, one in enumerate(kept) if one.id in {other.id for other in kept[:number]}]
    twice += [kept[n] for n in range(len(kept)) if kept[n].text.casefold() in {k.text.casefold() for k in kept[:n]}]
    if twice:
        raise BadRubrics(f"{twice[0].text!r} stands there twice", remedy=REMEDY)
    return tuple(kept)


def _stays(row: object, by_id: Mapping[str, Rubric]) -> bool:
    """Return whether a row is a known rubric as it was."""
    before = by_id.get(str(row.get("id"))) if isinstance(row, Mapping) else None
    return (
        before is not None
        and isinstance(row, Mapping)
        and before.text == row.get("text")
        and (before.polarity == row.get("polarity"))
    )


def _read(row: object, where: str) -> tuple[str, Polarity]:
    text = " ".join(str(row.get("text") or "").split()) if isinstance(row, Mapping) else ""
    if not isinstance(row, Mapping) or not text:
        raise BadRubrics("a rubric without text", where=where, remedy=REMEDY)
    if (side := row.get("polarity")) not in get_args(Polarity):
        raise BadRubrics(f"a polarity of {side!r}", where=where, remedy=REMEDY)
    return text, side  # type: ignore[return-value]
