"""A thumb that somebody gives while reading: a label of its own kind, as they have seen the score."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from starlette.concurrency import run_in_threadpool

from pollex.store.labels import VOLUNTARY, opinions
from pollex.store.resume import conversations_of
from pollex.store.tables import LabelRow, SheetRow, packed
from pollex.web import links
from pollex.web.faults import Clash, NotThere
from pollex.web.forms import Form
from pollex.web.queues import QUESTION
from pollex.web.site import Site
from pollex.web.views import Done, post


class ThumbForm(Form):
    """A thumb about a conversation; `of` is the query of the list that it was found in."""

    run: str
    id: str
    who: str = Field(min_length=1, max_length=80)
    value: Literal["up", "down"]
    comment: str = Field("", max_length=2000)
    of: str = ""


@post("/api/thumbs", ThumbForm)
async def thumb(site: Site, form: ThumbForm) -> Done:
    """Keep a thumb; one that was given blind, in a queue, is not changed by it."""
    run = await run_in_threadpool(site.run, form.run)
    found = await run_in_threadpool(lambda: next(conversations_of(site.store, run.id, ids=[form.id]), None))
    if found is None:
        raise NotThere("this run has no such conversation", remedy="the list of its conversations has those there are")
    async with site.turn:
        said = await run_in_threadpool(opinions, site.store, QUESTION)
        mine = next((one for one in said if (one.annotator, one.text_hash) == (form.who, found.text_hash)), None)
        if mine is not None and mine.drawn != VOLUNTARY:
            what = f"{form.who} has labeled it before, without seeing its score"
            raise Clash(what, remedy="the queue is where that answer is changed")
        label = LabelRow(form.who, found.text_hash, found.id, run.id, QUESTION, packed(form.value), drawn=VOLUNTARY)
        others = any(one.text_hash == found.text_hash and one.annotator != form.who for one in said)
        saw = ("prediction", "others") if others else ("prediction",)
        await site.store.write([label, SheetRow(label.id, comment=form.comment, saw=saw)])
    back = links.conversation(run.id, found.id, of=form.of, who=form.who)
    return back, {"label": label.id}
