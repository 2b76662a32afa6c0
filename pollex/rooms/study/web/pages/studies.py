"""Studies and guests, as whoever runs the server sees them: who came, how it goes, and what to take along."""

import json
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from starlette.responses import Response

from pollex.measures.distributions import estimate_mean_grade
from pollex.measures.intervals import Figure
from pollex.rooms.study.web.links import TALK_PATH
from pollex.rooms.study.web.studies import (
    Study,
    TalkSession,
    TalkSide,
    list_talks,
    read_stored_studies,
)
from pollex.web import links
from pollex.web.guests import list_guest_links
from pollex.web.site import Site
from pollex.web.views import PageData, iterate_csv_lines, page, send_file


@page(TALK_PATH, "studies.html", here="Talk")
def list_studies(site: Site) -> PageData:
    """List the studies."""
    talks_by_study = []
    for study in read_stored_studies(site.store):
        talks_by_study.append((study, list_talks(site.store, study.id)))

    return {"studies": talks_by_study}


def show_study(site: Site, study: Study) -> PageData:
    """Show how a study goes, and its participants."""
    talks = list_talks(site.store, study.id)
    place = f"{TALK_PATH}/{study.id}"
    return {
        "template": "study.html",
        "here": "Talk",
        "talks": talks,
        "cells": build_study_cells(study, talks),
        "guests": (guest_links := list_guest_links(site.store, site.seal, place)),
        "names": {link["id"]: link["name"] for link in guest_links},
        # systems without a profile can't be talked to
        "missing": [name for name in study.systems if name not in site.profiles],
    }


def build_study_cells(study: Study, talks: Sequence[TalkSession]) -> list[PageData]:
    """Return each system on each topic, and on all of them: sessions that are done, others, and mean answers."""
    # a session has a side for each of its systems
    sides = []
    for talk in talks:
        for side in talk.sides:
            sides.append((talk, side))

    topics = list(dict.fromkeys(talk.topic for talk in talks))
    sides_left = []
    for system in study.systems:
        # with several topics a row for all of them, then one for each
        for topic in (None, *topics) if len(topics) > 1 else (None,):
            talks_of_guest = []
            for talk, side in sides:
                if side.system == system and topic in (None, talk.topic):
                    talks_of_guest.append((talk, side))

            # a side is done when its questions are answered
            done = []
            for _, side in talks_of_guest:
                if side.answers:
                    done.append(side)

            means = tuple(
                # [question]: mean of those who answered it
                _average_answers([side.answers.get(question.id) for side in done])
                for question in study.questions
            )
            about = {
                "system": system,
                "topic": topic or "",
                "done": len(done),
                "others": len(talks_of_guest) - len(done),
            }
            sides_left.append(about | {"means": means})

    return sides_left


def _average_answers(answers: Sequence[tuple[float | None, str] | None]) -> Figure:
    values = np.array(
        [answer[0] for answer in answers if answer and answer[0] is not None],
        dtype=np.float64,
    )
    return estimate_mean_grade(values, np.random.default_rng(0))


@page("/api/studies/{study}/export")
def export_study(
    site: Site,
    study: Study,
    what: Literal["conversations", "judgments"] = "conversations",
) -> Response:
    """Send a study's conversations as a log, or what participants answered as a table for `calibrate`."""
    talks = list_talks(site.store, study.id)
    # answers for `calibrate`, or what was said as a log
    if what == "judgments":
        return send_file(
            "judgments.csv",
            "text/csv",
            iterate_csv_lines(iterate_judgment_rows(study, talks)),
        )

    return send_file(
        "conversations.jsonl", links.NDJSON_CONTENT_TYPE, iterate_conversation_lines(talks)
    )


def iterate_conversation_lines(talks: Sequence[TalkSession]) -> Iterator[str]:
    """Yield what was said to each system, as lines of a log."""
    # sides on which something was said
    for talk, side in _iterate_held_sides(talks):
        row: dict[str, object] = {
            "id": make_text_id(talk, side),
            "messages": side.messages,
            "system": side.system,
            "topic": talk.topic,
            "position": side.position + 1,
            # one person's conversations belong together
            "group": talk.annotator,
            # why it ended: with its answers, by leaving, or while it still went on
            "ended": "done" if side.answers else "left" if talk.left else "early",
            "marked": side.marked,
            "ms": [round(turn["ms"]) for turn in side.turns],
            "edits": [turn["edits"] for turn in side.turns],
            "sources": side.sources,
            "quotes": side.quotes,
        }
        yield json.dumps(row, ensure_ascii=False) + "\n"


def iterate_judgment_rows(
    study: Study, talks: Sequence[TalkSession]
) -> Iterator[tuple[object, ...]]:
    """Yield the answers as a long table; who gave none to a question has no row there."""
    yield "text_id", "question", "judge", "answer", "system", "topic", "position"
    for talk, side in _iterate_held_sides(talks):
        for question in study.questions:
            value, _ = side.answers.get(question.id, (None, ""))
            if value is not None:
                about = side.system, talk.topic, side.position + 1
                yield make_text_id(talk, side), question.id, talk.annotator, value, *about


def make_text_id(talk: TalkSession, side: TalkSide) -> str:
    """Return the id of what was said to one system in a session."""
    return f"{talk.id}-{side.position + 1}"


def _iterate_held_sides(talks: Sequence[TalkSession]) -> Iterator[tuple[TalkSession, TalkSide]]:
    return ((talk, side) for talk in talks for side in talk.sides if side.turns)
