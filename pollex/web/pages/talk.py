"""Talk: what a participant of a study sees and sends, one session each."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pollex.gateway.budget import Budget
from pollex.store.tables import Row, TalkAnswerRow, now, packed
from pollex.web import links
from pollex.web.faults import Clash, Forbidden
from pollex.web.forms import Answers, Place
from pollex.web.guests import Guest, guest_of
from pollex.web.pages.studies import show_study
from pollex.web.questions import answers_on
from pollex.web.site import Site
from pollex.web.studies import TALKED, Phase, Study, Talk, begin, ended, message, replies, talks_of
from pollex.web.views import Data, Done, page, post

PIECES_SECONDS = 0.1
"""Between two pieces of a reply that is being written."""


Message = Annotated[str, Field(min_length=1, max_length=8000)]
Typed = Annotated[float, Field(ge=0)]
"""Milliseconds, where a script counted them."""
PAGE, WRITE = f"{links.TALK}/{{study}}", "/api/talks/{study}"


Position = Annotated[int, Field(ge=0, le=8)]


@page(PAGE, "talk.html")
def talk(site: Site, study: Study, request: Request) -> Data:
    """Show a participant their session, and anybody else how the study goes."""
    guest = guest_of(request)
    if guest is None:
        return show_study(site, study)
    found = next(iter(talks_of(site.store, study.id, guest.id)), None)
    phase = _phase(site, study, found) if found else "welcome"
    return {
        "guest": guest,
        "talk": found,
        "phase": phase,
        "open": found.open(study) if found else [],
        "due": found.sheet(study) if found else None,
        "speaking": site.speaking.get(found.id, {}) if found else {},
        "over": False,
    }


@page(f"{PAGE}/live", "talk_live.html")
def live(site: Site, study: Study, request: Request) -> Data:
    """Tell whether the replies have come."""
    guest = _participant(request)
    over = all(_phase(site, study, one) != "wait" for one in talks_of(site.store, study.id, guest.id))
    return {"headers": {"X-Pollex-Ended": "again" if over else ""}, "over": over}


@page(f"{PAGE}/stream")
def stream(site: Site, study: Study, request: Request) -> Response:
    """Send what the systems say while they say it, a line a piece, and a last line when all have answered."""
    guest = _participant(request)
    found = next(iter(talks_of(site.store, study.id, guest.id)), None)
    return StreamingResponse(_pieces(site, found.id if found else ""), media_type=links.NDJSON)


async def _pieces(site: Site, talk_id: str) -> AsyncIterator[str]:
    """Yield pieces; each names its system's position and whether it begins the reply, or goes on with it."""
    sent: dict[int, str] = {}
    while True:
        task = site.working.get(talk_id)
        over = task is None or task.done()
        for position, text in sorted(site.speaking.get(talk_id, {}).copy().items()):
            known = sent.get(position, "")
            begins = not known or not text.startswith(known)
            if text != known:
                piece = {"position": position, "begins": begins, "text": text if begins else text[len(known) :]}
                yield json.dumps(piece, ensure_ascii=False) + "\n"
            sent[position] = text
        if over:
            yield json.dumps({"ended": True}) + "\n"
            return
        await asyncio.sleep(PIECES_SECONDS)


@post(f"{WRITE}/begin")
def start(site: Site, study: Study, request: Request) -> Done:
    """Begin the session: the participant has agreed."""
    guest = _participant(request)
    with site.turn:
        found = begin(site.store, study, guest.id)
    return guest.page, {"talk": found.id}


@post(f"{WRITE}/turns")
def turn(site: Site, study: Study, request: Request, text: Message, ms: Typed = 0, edits: Place = 0) -> Done:
    """Keep a message, and ask the systems; the page tells when they have answered."""
    guest = _participant(request)
    with site.turn:
        found = _session(site, study, guest, "talk")
        sides = found.open(study)
        if max(side.said for side in sides) >= study.turns[1]:
            raise Clash("that were all messages", remedy="answer the questions")
        site.store.keep(message(found, sides, text, ms, edits))
        _ask(site, study, talks_of(site.store, study.id, guest.id)[0])
    return guest.page, {"talk": found.id}


@post(f"{WRITE}/again")
def again(site: Site, study: Study, request: Request) -> Done:
    """Ask the systems again that gave no reply."""
    guest = _participant(request)
    with site.turn:
        found = _session(site, study, guest, "failed")
        _ask(site, study, found)
    return guest.page, {"talk": found.id}


@post(f"{WRITE}/end")
def end(site: Site, study: Study, request: Request, why: Literal["talked", "left"]) -> Done:
    """End talking with a system, or the whole session."""
    guest = _participant(request)
    with site.turn:
        phases: tuple[Phase, ...] = ("talk",) if why == TALKED else ("talk", "failed", "sheet")
        found = _session(site, study, guest, *phases)
        sides = found.open(study) or [*found.sides]
        if why == TALKED and min(side.said for side in sides) < study.turns[0]:
            raise Clash(f"send at least {study.turns[0]} messages", remedy="go on talking, or stop")
        site.store.keep(ended(found, sides, why))
    return guest.page, {"talk": found.id}


@post(f"{WRITE}/sheet")
def keep(site: Site, study: Study, request: Request, position: Position, answers: Answers) -> Done:
    """Keep the answers about one system; they are on the disk before this answers."""
    guest = _participant(request)
    with site.turn:
        found = _session(site, study, guest, "sheet")
        due = found.sheet(study)
        if due is None or due.position != position:
            raise Clash("these answers are about another system", remedy="load the page again")
        moment, given = now(), answers_on(study.questions, answers)
        rows: list[Row] = [
            TalkAnswerRow(found.id, due.position, question, packed(value), skip, moment)
            for question, value, skip in given
        ]
        site.store.keep(rows)
    return guest.page, {"talk": found.id}


def _participant(request: Request) -> Guest:
    guest = guest_of(request)
    if guest is None:
        raise Forbidden("only participants talk", remedy="make a link for one on the study's page")
    return guest


def _session(site: Site, study: Study, guest: Guest, *phases: Phase) -> Talk:
    """Return a participant's session. Raises Clash where it is not in one of these phases."""
    found = next(iter(talks_of(site.store, study.id, guest.id)), None)
    if found is None or _phase(site, study, found) not in phases:
        raise Clash("your session is somewhere else by now", remedy="load the page again")
    return found


def _phase(site: Site, study: Study, found: Talk) -> Phase:
    task = site.working.get(found.id)
    return found.phase(study, at_work=task is not None and not task.done())


def _ask(site: Site, study: Study, found: Talk) -> None:
    for name in study.systems:
        if name in site.profiles and name not in site.budgets:
            site.budgets[name] = Budget(site.profiles[name].limits)
    said = None if study.whole else site.speaking.setdefault(found.id, {})
    if said:
        said.clear()
    asking = (site.store, study, found, found.open(study), site.profiles, site.budgets, said)
    site.working[found.id] = site.at_work.submit(replies, *asking)
