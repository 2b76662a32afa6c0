"""Labeling: queues, and one conversation at a time by keys alone."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pollex.formats.questionnaires import PAPER, SheetQuestion, questionnaire_at
from pollex.reports.transcript import marked_turns
from pollex.store.resume import conversations_of
from pollex.store.runs import Run
from pollex.store.tables import LabelRow, LeaseRow, QueueRow, Row, SheetRow, now, packed
from pollex.web import links
from pollex.web.faults import Clash, Fault, NotThere
from pollex.web.forms import Form, Name, Words
from pollex.web.guests import guest_of, links_to, require_name
from pollex.web.listing import SCORING, lens_for, scoring_run
from pollex.web.questions import answers_on, of_rubrics, of_toml, packed_sheet, questions_of
from pollex.web.queues import (
    KINDS,
    QUESTION,
    RANDOM,
    UNDONE,
    adopted,
    lease_of,
    left_of,
    next_lease,
    queue_of,
    queues_of,
    require_open,
)
from pollex.web.site import Site
from pollex.web.views import Data, Done, page, post

Thumb = Literal["up", "down"]


class QueueForm(Form):
    """A new queue."""

    name: Name
    kind: Literal["telling", "unsure", "window", "differs", "random", "filter"] = "unsure"
    run: str = ""
    random_share: float = Field(0.2, ge=0, le=1)
    repeat_share: float = Field(0.05, ge=0, le=1)
    overlap: int = Field(1, ge=1, le=20)
    filter: Words = ""
    ask: Literal["thumb", "rubrics", "questionnaire", "llm-rubric"] = "thumb"
    questionnaire: str = ""


class LabelForm(Form):
    """An answer to each question, `q-ID` with the option's place, or a thumb; or why there is none."""

    model_config = ConfigDict(frozen=True, extra="allow")
    BEGINNINGS = ("q-",)

    lease: str
    who: Name
    value: Thumb | None = None
    skip: str = Field("", max_length=500)
    comment: Words = ""
    shown_ms: float = Field(0, ge=0)


@page(links.LABEL, "queues.html", here="Label")
def queues(site: Site) -> Data:
    """List the queues, with how far each is."""
    found = [
        (queue, KINDS[queue.kind][0], left_of(site.store, queue, lens_for(site, site.run(queue.run))))
        for queue in queues_of(site.store)
    ]
    scored = [run for run in site.runs() if run.command in SCORING]
    return {"queues": found, "kinds": KINDS, "runs": scored, "site_of": site}


@post("/api/queues")
def make_queue(site: Site, form: QueueForm) -> Done:
    """Make a queue of a run's conversations."""
    run = scoring_run(site, form.run)
    queue = QueueRow(
        id=secrets.token_hex(4),
        run=run.id,
        seed=secrets.randbits(32),
        time=now(),
        sheet=packed_sheet(_asked(site, run, form)),
        **form.model_dump(exclude={"run", "ask", "questionnaire"}),
    )
    site.store.keep([queue])
    return f"{links.LABEL}/{queue.id}", {"queue": queue.id}


def _asked(site: Site, run: Run, form: QueueForm) -> list[SheetQuestion]:
    """Return the questions of a new queue; none for a thumb."""
    if form.ask == "questionnaire":
        return of_toml(form.questionnaire)
    if form.ask == PAPER:
        return questionnaire_at(PAPER)
    if form.ask == "thumb":
        return []
    if (named := site.set_of(run)) is None:
        raise NotThere("the rubric set of this run isn't here", remedy="name its file at the start", option="rubrics")
    return of_rubrics(named.rubric_set)


@page(f"{links.LABEL}/{{queue}}", "sheet.html", here="Label")
def sheet(site: Site, queue: QueueRow, request: Request, lease: str = "") -> Data:
    """Show the conversation at hand, and nothing that anybody or any model said of it."""
    run = site.run(queue.run)
    left = left_of(site.store, queue, lens_for(site, run))
    found = lease_of(site.store, lease) if lease else None
    if found and found.queue != queue.id:
        raise Clash("this lease is of another queue", remedy="ask for the next conversation")
    shown = next(conversations_of(site.store, run.id, ids=[found.conversation]), None) if found else None
    turns = marked_turns(shown.turns, {}) if shown else []
    return {
        "words": KINDS[queue.kind][0],
        "left": left,
        "lease": found,
        "questions": questions_of(queue.sheet),
        "turns": turns,
        "answered": found is not None and site.store.value("SELECT label FROM sheets WHERE lease = ?", [found.id]),
        "before": _before(site, queue, found),
        "guest": guest_of(request),
        "guests": links_to(site.store, f"{links.LABEL}/{queue.id}"),
    }


def _before(site: Site, queue: QueueRow, lease: LeaseRow | None) -> str | None:
    """Return the lease that its annotator answered last, to change the answer."""
    if lease is None:
        return None
    found: str | None = site.store.value(
        "SELECT s.lease FROM sheets AS s JOIN leases AS l ON l.id = s.lease WHERE l.queue = ? AND l.annotator = ? "
        "AND l.id <> ? ORDER BY l.rowid DESC LIMIT 1",
        [queue.id, lease.annotator, lease.id],
    )
    return found


@post("/api/queues/{queue}/next")
def give_next(site: Site, queue: QueueRow, request: Request, who: Name) -> Done:
    """Give an annotator the next conversation of a queue."""
    require_name(request, who, queue.id)
    return _next(site, queue, who)


def _next(site: Site, queue: QueueRow, who: str) -> Done:
    with site.turn:
        lease, passed = next_lease(site.store, queue, lens_for(site, site.run(queue.run)), who)
        rows: list[Row] = [*adopted(site.store, queue, passed)]
        if lease and not site.store.value("SELECT id FROM leases WHERE id = ?", [lease.id]):
            rows.append(lease)
        if rows:
            site.store.keep(rows)
    address = links.address(f"{links.LABEL}/{queue.id}", lease=lease.id if lease else None)
    return address, {"lease": lease and lease.id, "conversation": lease and lease.conversation}


@post("/api/labels")
def keep(site: Site, form: LabelForm, request: Request) -> Done | Response:
    """Keep an answer; it is on the disk before this answers."""
    with site.turn:
        lease = lease_of(site.store, form.lease)
        require_name(request, form.who, lease.queue)
        require_open(lease, form.who)
        queue = queue_of(site.store, lease.queue)
        given = site.store.rows(BEFORE, [lease.id])
        before = {row["question"]: row["id"] for row in given}
        drawn = RANDOM if RANDOM in {row["drawn"] for row in given} else lease.drawn
        rows: list[Row] = []
        for question, value, skip in _answers(form, questions_of(queue.sheet)):
            label = LabelRow(
                annotator=form.who,
                text_hash=lease.text_hash,
                conversation=lease.conversation,
                run=queue.run,
                question=question,
                value=packed(value),
                drawn=drawn,
            )
            again = before.get(question, "")
            took = form.shown_ms or None, since(lease.time)
            rows += [label, SheetRow(label.id, lease.id, queue.id, skip, form.comment, again, *took)]
        site.store.keep(rows)
    if request.headers.get("content-type", "").startswith("application/json"):
        return JSONResponse({"ok": True, "label": label.id, "replaces": before.get(QUESTION)})
    return _next(site, queue, form.who)


@post("/api/labels/{id}/undo")
def undo(site: Site, id_: str, request: Request, who: Name) -> Done:
    """Take a sheet's answers back; its conversation comes again while its lease lasts."""
    with site.turn:
        found = site.store.value("SELECT lease FROM sheets WHERE label = ?", [id_])
        if not found:
            raise NotThere("no queue gave such a label", remedy="take back one that a queue's sheet kept")
        lease = lease_of(site.store, found)
        require_name(request, who, lease.queue)
        require_open(lease, who)
        run = queue_of(site.store, lease.queue).run
        kept = {row["question"]: row["id"] for row in site.store.rows(BEFORE, [lease.id])}
        if id_ not in kept.values():
            raise Clash("this answer was changed since", remedy="take the newer one back")
        rows: list[Row] = []
        for question, before in kept.items():
            label = LabelRow(who, lease.text_hash, lease.conversation, run, question, packed(None), drawn=lease.drawn)
            rows += [label, SheetRow(label.id, lease.id, lease.queue, UNDONE, replaces=before)]
        site.store.keep(rows)
    return links.address(f"{links.LABEL}/{lease.queue}", lease=lease.id), {"lease": lease.id}


def since(time: str) -> float:
    """Return the milliseconds since an ISO time."""
    return 1000 * (datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()


BEFORE = """
    SELECT l.question, l.id, l.drawn FROM sheets AS s JOIN labels AS l ON l.id = s.label WHERE s.lease = ?
    ORDER BY s.rowid
"""


def _answers(form: LabelForm, questions: Sequence[SheetQuestion]) -> list[tuple[str, str | float | None, str]]:
    """Return question, value, and why there is none, for each question of a sheet; all are wanted."""
    if form.skip and form.value is None:
        return [(one.id, None, form.skip) for one in questions] or [(QUESTION, None, form.skip)]
    if not questions:
        if form.value is None or form.skip:
            raise Fault("give a value, or why you skip it", remedy="value: up or down; skip: a reason")
        return [(QUESTION, form.value, "")]
    return answers_on(questions, form.model_extra or {})
