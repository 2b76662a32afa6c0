"""Decisions where annotators differ: the widest spread first, and no names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from pollex.formats.questionnaires import SheetQuestion
from pollex.reports.transcript import marked_turns
from pollex.store.labels import Opinion, opinions
from pollex.store.resume import conversations_of
from pollex.store.tables import LabelRow, SheetRow, packed
from pollex.web import links
from pollex.web.faults import Clash, Fault
from pollex.web.forms import Name, Words
from pollex.web.opinions import asked_about, disputed, sheet_questions
from pollex.web.queues import QUESTION
from pollex.web.site import Site
from pollex.web.views import Data, Done, page, post

Option = tuple[str | float, str]
Reason = Annotated[str, Field(min_length=1, max_length=2000)]
THUMBS: tuple[Option, ...] = (("up", "up"), ("down", "down"))


@page(links.ADJUDICATE, "adjudicate.html", here="Label")
def adjudicate(site: Site, question: str = "") -> Data:
    """Show the text on which annotators differ most, without their names."""
    known = sheet_questions(site.store)
    left = {
        one: differing
        for one in asked_about(site.store)
        if (one == QUESTION or one in known) and (differing := disputed(opinions(site.store, one)))
    }
    question = question or next(iter(left), QUESTION)
    of = left.get(question, {})
    text = max(of, key=lambda one: spread(of[one]), default="")
    said = of.get(text, [])
    found = next(conversations_of(site.store, said[0].run, ids=[said[0].conversation]), None) if said else None
    options = options_of(question, known)
    words: dict[object, str] = dict(options)
    return {
        "text": text,
        "answers": [(chr(ord("A") + place % 26), words.get(one.value, one.value)) for place, one in enumerate(said)],
        "turns": marked_turns(found.turns, {}) if found else [],
        "left": len(of),
        "question": question,
        "asked": known[question].text if question in known else "",
        "options": options,
        "others": {one: (len(every), known[one].text if one in known else "") for one, every in left.items()},
    }


def spread(said: Sequence[Opinion]) -> float:
    """Return how far answers lie apart: the range of numbers, else the share that the largest part leaves."""
    values: list[str | float] = [one.value for one in said]
    numbers = [value for value in values if isinstance(value, float)]
    if len(numbers) == len(values):
        return max(numbers) - min(numbers)
    return 1 - max(Counter(values).values()) / len(values)


def options_of(question: str, known: dict[str, SheetQuestion]) -> tuple[Option, ...]:
    """Return the options of a question, each with its words."""
    return known[question].options if question in known else THUMBS


@post("/api/adjudications")
def decide(site: Site, text: str, who: Name, value: Words, reason: Reason, question: str = QUESTION) -> Done:
    """Keep a decision as a label of its own."""
    with site.turn:
        known = sheet_questions(site.store)
        options = options_of(question, known)
        chosen = next((one for one, _ in options if str(one) == value), None)
        if chosen is None:
            remedy = f"take one of {', '.join(str(value) for value, _ in options)}"
            raise Fault(f"{value[:80]!r} is no option of the question", remedy=remedy)
        said = disputed(opinions(site.store, question)).get(text)
        if said is None:
            raise Clash("the annotators no longer disagree about this text", remedy="go on with the next one")
        about = {"conversation": said[0].conversation, "run": said[0].run, "question": question}
        label = LabelRow(who, text, **about, value=packed(chosen), source="adjudicated")
        site.store.keep([label, SheetRow(label.id, comment=reason, saw=("others",))])
    return links.address(links.ADJUDICATE, question=question), {"label": label.id}
