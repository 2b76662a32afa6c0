"""A thumb that somebody gives while reading: a label of its own kind, as they have seen the score."""

from __future__ import annotations

from typing import Literal

from pollex.store.labels import VOLUNTARY, opinions
from pollex.store.resume import conversations_of
from pollex.store.runs import Run
from pollex.store.tables import LabelRow, SheetRow, packed
from pollex.web import links
from pollex.web.faults import Clash, NotThere
from pollex.web.forms import Name, Words
from pollex.web.queues import QUESTION
from pollex.web.site import Site
from pollex.web.views import Done, post


@post("/api/thumbs")
def thumb(
    site: Site, run: Run, id_: str, who: Name, value: Literal["up", "down"], comment: Words = "", of: str = ""
) -> Done:
    """Keep a thumb; one that was given blind, in a queue, is not changed by it."""
    found = next(conversations_of(site.store, run.id, ids=[id_]), None)
    if found is None:
        raise NotThere("this run has no such conversation", remedy="the list of its conversations has those there are")
    with site.turn:
        said = opinions(site.store, QUESTION)
        mine = next((one for one in said if (one.annotator, one.text_hash) == (who, found.text_hash)), None)
        if mine is not None and mine.drawn != VOLUNTARY:
            what = f"{who} has labeled it before, without seeing its score"
            raise Clash(what, remedy="the queue is where that answer is changed")
        label = LabelRow(who, found.text_hash, found.id, run.id, QUESTION, packed(value), drawn=VOLUNTARY)
        others = any(one.text_hash == found.text_hash and one.annotator != who for one in said)
        saw = ("prediction", "others") if others else ("prediction",)
        site.store.keep([label, SheetRow(label.id, comment=comment, saw=saw)])
    back = links.conversation(run.id, found.id, of=of, who=who)
    return back, {"label": label.id}
