"""Talk: what a participant of a study sees and sends, one session each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Literal

from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from pollex.gateway.budget import Budget
from pollex.store.desk import TalkAnswerRow
from pollex.store.tables import Row, now, packed
from pollex.web import frame, links
from pollex.web.faults import Clash, Forbidden
from pollex.web.forms import Form, Nothing, answered, body, query, site_of
from pollex.web.guests import Guest, guest_of
from pollex.web.pages.studies import show_study
from pollex.web.questions import answers_on
from pollex.web.site import Site
from pollex.web.studies import Study, study_of
from pollex.web.talking import TALKED, Phase, Talk, begin, ended, message, replies, talks_of

PIECES_SECONDS = 0.1
"""Between two pieces of a reply that is being written."""


class TurnForm(Form):
    """A message of the participant.

    Attributes:
        ms: How long it was typed, where a script counted it.
        edits: How often something was taken back.
    """

    text: str = Field(min_length=1, max_length=8000)
    ms: float = Field(0, ge=0)
    edits: int = Field(0, ge=0)


class EndForm(Form):
    """The end of talking, or of the session."""

    why: Literal["talked", "left"]


class SheetForm(Form):
    """An answer to each question, `q-ID` with the option's place, about one system."""

    model_config = ConfigDict(frozen=True, extra="allow")
    BEGINNINGS = ("q-",)

    position: int = Field(ge=0, le=8)


def talk(request: Request) -> Response:
    """Show a participant their session, and anybody else how the study goes."""
    site, guest = site_of(request), guest_of(request)
    query(request, Nothing)
    study = study_of(site.store, request.path_params["study"])
    if guest is None:
        return show_study(site, study)
    found = next(iter(talks_of(site.store, study.id, guest.id)), None)
    phase = _phase(site, study, found) if found else "welcome"
    return frame.page(
        "talk.html",
        site=site.id,
        here="",
        guest=guest,
        study=study,
        talk=found,
        phase=phase,
        open=found.open(study) if found else [],
        due=found.sheet(study) if found else None,
        speaking=site.speaking.get(found.id, {}) if found else {},
        over=False,
        read_only=site.read_only,
    )


def live(request: Request) -> Response:
    """Tell whether the replies have come."""
    site = site_of(request)
    study, guest = study_of(site.store, request.path_params["study"]), _participant(request)
    over = all(_phase(site, study, one) != "wait" for one in talks_of(site.store, study.id, guest.id))
    return frame.page("talk_live.html", headers={"X-Pollex-Ended": "again" if over else ""}, over=over)


async def stream(request: Request) -> Response:
    """Send what the systems say while they say it, a line a piece, and a last line when all have answered."""
    site, guest = site_of(request), _participant(request)
    found = next(iter(await run_in_threadpool(talks_of, site.store, request.path_params["study"], guest.id)), None)
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


async def start(request: Request) -> Response:
    """Begin the session: the participant has agreed."""
    await body(request, Nothing)
    site, study, guest = await _visited(request)
    async with site.turn:
        found = await begin(site.store, study, guest.id)
    return answered(request, guest.page, {"talk": found.id})


async def turn(request: Request) -> Response:
    """Keep a message, and ask the systems; the page tells when they have answered."""
    form = await body(request, TurnForm)
    site, study, guest = await _visited(request)
    async with site.turn:
        found = await _session(site, study, guest, "talk")
        sides = found.open(study)
        if max(side.said for side in sides) >= study.turns[1]:
            raise Clash("that were all messages", remedy="answer the questions")
        await site.store.write(message(found, sides, form.text, form.ms, form.edits))
        _ask(site, study, talks_of(site.store, study.id, guest.id)[0])
    return answered(request, guest.page, {"talk": found.id})


async def again(request: Request) -> Response:
    """Ask the systems again that gave no reply."""
    await body(request, Nothing)
    site, study, guest = await _visited(request)
    async with site.turn:
        found = await _session(site, study, guest, "failed")
        _ask(site, study, found)
    return answered(request, guest.page, {"talk": found.id})


async def end(request: Request) -> Response:
    """End talking with a system, or the whole session."""
    form = await body(request, EndForm)
    site, study, guest = await _visited(request)
    async with site.turn:
        phases: tuple[Phase, ...] = ("talk",) if form.why == TALKED else ("talk", "failed", "sheet")
        found = await _session(site, study, guest, *phases)
        sides = found.open(study) or [*found.sides]
        if form.why == TALKED and min(side.said for side in sides) < study.turns[0]:
            raise Clash(f"send at least {study.turns[0]} messages", remedy="go on talking, or stop")
        await site.store.write(ended(found, sides, form.why))
    return answered(request, guest.page, {"talk": found.id})


async def keep(request: Request) -> Response:
    """Keep the answers about one system; they are on the disk before this answers."""
    form = await body(request, SheetForm)
    site, study, guest = await _visited(request)
    async with site.turn:
        found = await _session(site, study, guest, "sheet")
        due = found.sheet(study)
        if due is None or due.position != form.position:
            raise Clash("these answers are about another system", remedy="load the page again")
        moment, given = now(), answers_on(study.questions, form.model_extra or {})
        rows: list[Row] = [
            TalkAnswerRow(found.id, due.position, question, packed(value), skip, moment)
            for question, value, skip in given
        ]
        await site.store.write(rows)
    return answered(request, guest.page, {"talk": found.id})


def _participant(request: Request) -> Guest:
    guest = guest_of(request)
    if guest is None:
        raise Forbidden("only participants talk", remedy="make a link for one on the study's page")
    return guest


async def _visited(request: Request) -> tuple[Site, Study, Guest]:
    site, guest = site_of(request), _participant(request)
    site.require_writing()
    return site, await run_in_threadpool(study_of, site.store, request.path_params["study"]), guest


async def _session(site: Site, study: Study, guest: Guest, *phases: Phase) -> Talk:
    """Return a participant's session. Raises Clash where it is not in one of these phases."""
    found = next(iter(await run_in_threadpool(talks_of, site.store, study.id, guest.id)), None)
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
    asking = replies(site.store, study, found, found.open(study), site.profiles, site.budgets, said)
    site.working[found.id] = asyncio.create_task(asking)


PAGE, WRITE = f"{links.TALK}/{{study}}", "/api/talks/{study}"
ROUTES = [
    Route(PAGE, talk),
    Route(f"{PAGE}/live", live),
    Route(f"{PAGE}/stream", stream),
    Route(f"{WRITE}/begin", start, methods=["POST"]),
    Route(f"{WRITE}/turns", turn, methods=["POST"]),
    Route(f"{WRITE}/again", again, methods=["POST"]),
    Route(f"{WRITE}/end", end, methods=["POST"]),
    Route(f"{WRITE}/sheet", keep, methods=["POST"]),
]
