"""Decisions where annotators differ: the widest spread first, and no names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import Field
from starlette.concurrency import run_in_threadpool

from pollex.formats.questionnaires import SheetQuestion
from pollex.reports.transcript import marked_turns
from pollex.store.labels import Opinion, opinions
from pollex.store.resume import conversations_of
from pollex.store.tables import LabelRow, SheetRow, packed
from pollex.web import links
from pollex.web.faults import Clash, Fault
from pollex.web.forms import Form
from pollex.web.opinions import asked_about, disputed, sheet_questions
from pollex.web.queues import QUESTION
from pollex.web.site import Site
from pollex.web.views import Data, Done, page, post

Option = tuple[str | float, str]
THUMBS: tuple[Option, ...] = (("up", "up"), ("down", "down"))


class PlaceForm(Form):
    """The question to decide about; without one, the first about which people differ."""

    question: str = ""


class DecisionForm(Form):
    """The form for a decision if annotators differ; `value` is that of one of the question's options."""

    text: str
    who: str = Field(min_length=1, max_length=80)
    value: str = Field(max_length=200)
    reason: str = Field(min_length=1, max_length=2000)
    question: str = QUESTION


@page(links.ADJUDICATE, "adjudicate.html", PlaceForm, here="Label")
def adjudicate(site: Site, form: PlaceForm) -> Data:
    """Show the text on which annotators differ most, without their names."""
    known = sheet_questions(site.store)
    left = {
        one: differing
        for one in asked_about(site.store)
        if (one == QUESTION or one in known) and (differing := disputed(opinions(site.store, one)))
    }
    question = form.question or next(iter(left), QUESTION)
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
        "read_only": site.read_only,
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


@post("/api/adjudications", DecisionForm)
async def decide(site: Site, form: DecisionForm) -> Done:
    """Keep a decision as a label of its own."""
    async with site.turn:
        known = await run_in_threadpool(sheet_questions, site.store)
        options = options_of(form.question, known)
        value = next((value for value, _ in options if str(value) == form.value), None)
        if value is None:
            remedy = f"take one of {', '.join(str(value) for value, _ in options)}"
            raise Fault(f"{form.value[:80]!r} is no option of the question", remedy=remedy)
        said = disputed(await run_in_threadpool(opinions, site.store, form.question)).get(form.text)
        if said is None:
            raise Clash("the annotators no longer disagree about this text", remedy="go on with the next one")
        label = _decision(said[0], form, value)
        await site.store.write([label, SheetRow(label.id, comment=form.reason, saw=("others",))])
    return links.address(links.ADJUDICATE, question=form.question), {"label": label.id}


def _decision(about: Opinion, form: DecisionForm, value: str | float) -> LabelRow:
    return LabelRow(
        annotator=form.who,
        text_hash=form.text,
        conversation=about.conversation,
        run=about.run,
        question=form.question,
        value=packed(value),
        source="adjudicated",
    )
