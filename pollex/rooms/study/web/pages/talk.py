"""Talk: what a participant of a study sees and sends, one session each."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pollex.gateway.budget import Budget
from pollex.rooms.study.store.tables import TalkAnswerRow, TalkEndRow, TalkRow, TalkTurnRow
from pollex.rooms.study.web.links import TALK_PATH
from pollex.rooms.study.web.pages.studies import show_study
from pollex.rooms.study.web.studies import (
    TALKED_REASON,
    Study,
    TalkMemory,
    TalkPhase,
    TalkSession,
    ask_for_replies,
    list_talks,
)
from pollex.store.tables import dump_json, format_current_time
from pollex.web import links
from pollex.web.faults import Forbidden, VersionConflict
from pollex.web.forms import AnswerFields, RowIndex
from pollex.web.guests import Guest, find_guest
from pollex.web.questions import read_sheet_answers
from pollex.web.site import Site
from pollex.web.views import NextPage, PageData, page, post

PIECES_SECONDS = 0.1
"""Between two parts of a reply that is being written."""


ParticipantMessage = Annotated[str, Field(min_length=1, max_length=8000)]
TypingMilliseconds = Annotated[float, Field(ge=0)]
"""Milliseconds, where a script counted them."""
TALK_PAGE_PATH = f"{TALK_PATH}/{{study}}"
TALK_API_PATH = "/api/talks/{study}"


SystemPosition = Annotated[int, Field(ge=0, le=8)]


@page(TALK_PAGE_PATH, "talk.html")
def show_talk(site: Site, study: Study, request: Request) -> PageData:
    """Show a participant their session, and anybody else how the study goes."""
    # whoever runs the server has no session of their own
    guest = find_guest(request)
    if guest is None:
        return show_study(site, study)

    # None before the first visit
    own_talk = next(iter(list_talks(site.store, study.id, guest.id)), None)
    phase = _get_phase(site, study, own_talk) if own_talk else "welcome"
    return {
        "guest": guest,
        "talk": own_talk,
        "phase": phase,
        "open": own_talk.open(study) if own_talk else [],
        "due": own_talk.sheet(study) if own_talk else None,
        "speaking": site.memory_of(TalkMemory).parts.get(own_talk.id, {}) if own_talk else {},
        "over": False,
    }


@page(f"{TALK_PAGE_PATH}/live", "talk_live.html")
def show_live(site: Site, study: Study, request: Request) -> PageData:
    """Tell whether the replies have come."""
    guest = _get_participant(request)
    over = all(
        _get_phase(site, study, talk) != "wait"
        for talk in list_talks(site.store, study.id, guest.id)
    )
    return {"headers": {"X-Pollex-Ended": "again" if over else ""}, "over": over}


@page(f"{TALK_PAGE_PATH}/stream")
def stream_replies(site: Site, study: Study, request: Request) -> Response:
    """Send what the systems say while they say it, a line a part, and a last line when all have answered."""
    guest = _get_participant(request)
    own_talk = next(iter(list_talks(site.store, study.id, guest.id)), None)
    return StreamingResponse(
        _stream_parts(site, own_talk.id if own_talk else ""),
        media_type=links.NDJSON_CONTENT_TYPE,
    )


async def _stream_parts(site: Site, talk_id: str) -> AsyncIterator[str]:
    """Yield parts; each names its system's position and whether it begins the reply, or goes on with it."""
    # what each system has said so far, as this page was told
    sent: dict[int, str] = {}
    while True:
        # read before the texts, so that nothing said before the end is missed
        task = site.working.get(talk_id)
        over = task is None or task.done()
        for position, text in sorted(
            site.memory_of(TalkMemory).parts.get(talk_id, {}).copy().items()
        ):
            known_text = sent.get(position, "")
            # a reply that is asked for again begins anew, else only its rest is sent
            begins = not known_text or not text.startswith(known_text)
            if text != known_text:
                part = {
                    "position": position,
                    "begins": begins,
                    "text": text if begins else text[len(known_text) :],
                }
                yield json.dumps(part, ensure_ascii=False) + "\n"

            sent[position] = text

        # the last line tells the page to load itself again
        if over:
            yield json.dumps({"ended": True}) + "\n"
            return
        await asyncio.sleep(PIECES_SECONDS)


@post(f"{TALK_API_PATH}/begin")
def start_session(site: Site, study: Study, request: Request) -> NextPage:
    """Begin the session, or go on with it: the participant has agreed."""
    guest = _get_participant(request)
    # numbers are given one after the other, so the lock holds while they are
    with site.turn:
        if not (talks := list_talks(site.store, study.id, guest.id)):
            number = site.store.value("SELECT count(*) FROM talks WHERE study = ?", [study.id])
            # the number decides the order of systems and the topic
            row = TalkRow(
                secrets.token_hex(6),
                study.id,
                number,
                guest.id,
                *study.session(number),
                format_current_time(),
            )
            site.store.keep([row])

    return guest.page, {"talk": talks[0].id if talks else row.id}


@post(f"{TALK_API_PATH}/turns")
def keep_message(
    site: Site,
    study: Study,
    request: Request,
    text: ParticipantMessage,
    ms: TypingMilliseconds = 0,
    edits: RowIndex = 0,
) -> NextPage:
    """Keep a message, and ask the systems; the page tells when they have answered."""
    # nobody may send two messages at a time
    with _hold_session(site, study, request, "talk") as talk_session:
        sides = talk_session.open(study)
        moment = format_current_time()
        if max(side.said for side in sides) >= study.turns[1]:
            raise VersionConflict("that were all messages", hint="answer the questions")
        # side by side, one message goes to all systems that are open
        site.store.keep(
            TalkTurnRow(talk_session.id, side.position, "user", text, moment, ms, edits)
            for side in sides
        )
        _ask_systems(
            site,
            study,
            list_talks(site.store, study.id, talk_session.annotator)[0],
        )

    return _make_page_redirect(talk_session)


@post(f"{TALK_API_PATH}/again")
def ask_again(site: Site, study: Study, request: Request) -> NextPage:
    """Ask the systems again that gave no reply."""
    with _hold_session(site, study, request, "failed") as talk_session:
        _ask_systems(site, study, talk_session)
    return _make_page_redirect(talk_session)


@post(f"{TALK_API_PATH}/end")
def end_talk(
    site: Site,
    study: Study,
    request: Request,
    why: Literal["talked", "left"],
) -> NextPage:
    """End talking with a system, or the whole session."""
    # leaving is possible after a fault and before the questions, too
    phases: tuple[TalkPhase, ...] = (
        ("talk",) if why == TALKED_REASON else ("talk", "failed", "sheet")
    )
    with _hold_session(site, study, request, *phases) as talk_session:
        # with no side open, leaving ends all of them
        sides = talk_session.open(study) or talk_session.sides
        moment = format_current_time()
        if why == TALKED_REASON and min(side.said for side in sides) < study.turns[0]:
            raise VersionConflict(
                f"send at least {study.turns[0]} messages",
                hint="go on talking, or stop",
            )

        site.store.keep(TalkEndRow(talk_session.id, side.position, why, moment) for side in sides)

    return _make_page_redirect(talk_session)


@post(f"{TALK_API_PATH}/sheet")
def keep_answers(
    site: Site,
    study: Study,
    request: Request,
    position: SystemPosition,
    answers: AnswerFields,
) -> NextPage:
    """Keep the answers about one system; they are on the disk before this answers."""
    # a sheet of an older page may be about another system
    with _hold_session(site, study, request, "sheet") as talk_session:
        due = talk_session.sheet(study)
        if due is None or due.position != position:
            raise VersionConflict(
                "these answers are about another system",
                hint="load the page again",
            )

        # questions that depend on how the talk went are asked of some sides only
        questions = due.asked(study.questions)
        moment = format_current_time()
        # questions that weren't asked are stored as skipped, with why
        answer_rows = [
            *read_sheet_answers(questions, answers),
            *(
                (question.id, None, question.skip)
                for question in study.questions
                if question not in questions
            ),
        ]
        about = []
        for question, value, skip in answer_rows:
            about.append((question, dump_json(value), skip))
        site.store.keep(
            TalkAnswerRow(talk_session.id, due.position, *answer, moment) for answer in about
        )

    return _make_page_redirect(talk_session)


def _make_page_redirect(talk: TalkSession) -> NextPage:
    return f"{TALK_PATH}/{talk.study}", {"talk": talk.id}


def _get_participant(request: Request) -> Guest:
    guest = find_guest(request)
    if guest is None:
        raise Forbidden(
            "only participants talk",
            hint="make a link for one on the study's page",
        )

    return guest


@contextmanager
def _hold_session(
    site: Site,
    study: Study,
    request: Request,
    *phases: TalkPhase,
) -> Iterator[TalkSession]:
    """Hold a participant's session. Raises VersionConflict where it is not in one of these phases."""
    guest = _get_participant(request)
    with site.turn:
        # a session that has gone on in another tab must not be changed from here
        own_talk = next(iter(list_talks(site.store, study.id, guest.id)), None)
        if own_talk is None or _get_phase(site, study, own_talk) not in phases:
            raise VersionConflict(
                "your session is somewhere else by now",
                hint="load the page again",
            )

        yield own_talk


def _get_phase(site: Site, study: Study, talk: TalkSession) -> TalkPhase:
    task = site.working.get(talk.id)
    return talk.phase(study, at_work=task is not None and not task.done())


def _ask_systems(site: Site, study: Study, talk: TalkSession) -> None:
    # limits hold per system over all sessions of a server
    for name in study.systems:
        if name in site.profiles and name not in site.memory_of(TalkMemory).budgets:
            site.memory_of(TalkMemory).budgets[name] = Budget(site.profiles[name].limits)

    # systems that speak in whole are shown when all have answered
    if study.whole:
        words_so_far = None
    else:
        words_so_far = site.memory_of(TalkMemory).parts.setdefault(talk.id, {})

    # parts of the reply before this one
    if words_so_far:
        words_so_far.clear()

    # in a thread of its own: the page asks for parts meanwhile
    site.working[talk.id] = site.at_work.submit(
        ask_for_replies,
        site.store,
        study,
        talk,
        site.profiles,
        site.memory_of(TalkMemory).budgets,
        words_so_far,
    )
