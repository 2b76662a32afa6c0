"""Labeling: queues, one conversation at a time by keys alone, agreement, adjudication, export."""

from __future__ import annotations

import csv
import io
import json
import secrets
from collections.abc import Iterator
from typing import Literal

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pollex.conversations.conversation import Conversation, messages_of
from pollex.formats.csv_rows import escape_formula
from pollex.reports.transcript import marked_turns
from pollex.store.resume import conversations_of
from pollex.store.tables import LabelRow, LeaseRow, QueueRow, SheetRow, now, packed
from pollex.web import frame, links
from pollex.web.faults import Clash, Fault
from pollex.web.forms import Form, Nothing, answered, body, query, site_of
from pollex.web.listing import lens_for, scoring_run
from pollex.web.once import once
from pollex.web.opinions import Opinion, agreement, between, disputed, opinions, settled
from pollex.web.queues import KINDS, QUESTION, lease_of, left_of, next_lease, queue_of, queues_of, require_open
from pollex.web.site import Site

Name = Field(min_length=1, max_length=80)
Thumb = Literal["up", "down"]


class QueueForm(Form):
    """A new queue."""

    name: str = Name
    kind: Literal["unsure", "window", "differs", "random"] = "unsure"
    run: str = ""
    random_share: float = Field(0.2, ge=0, le=1)
    overlap: int = Field(1, ge=1, le=20)


class NextForm(Form):
    """The form for the next conversation of a queue."""

    who: str = Name


class SheetForm(Form):
    """The conversation at hand."""

    lease: str = ""


class LabelForm(Form):
    """An answer, or why there is none."""

    lease: str
    who: str = Name
    value: Thumb | None = None
    skip: str = Field("", max_length=500)
    comment: str = Field("", max_length=2000)


class DecisionForm(Form):
    """The form for a decision if annotators differ."""

    text: str
    who: str = Name
    value: Thumb
    reason: str = Field(min_length=1, max_length=2000)


class ExportForm(Form):
    """The form for an export of labels."""

    sources: str = "person,adjudicated"
    drawn: Literal["all", "random"] = "all"
    shape: Literal["log", "long"] = "log"


def queues(request: Request) -> Response:
    """List the queues, with how far each is."""
    site = site_of(request)
    query(request, Nothing)
    found = [
        (queue, KINDS[queue.kind][0], left_of(site.store, queue, lens_for(site, site.run(queue.run))))
        for queue in queues_of(site.store)
    ]
    scored = [run for run in site.runs() if run.command in ("score", "evaluate", "label", "learn", "refit")]
    return frame.page("queues.html", site=site.id, here="Label", queues=found, kinds=KINDS, runs=scored, site_of=site)


async def make_queue(request: Request) -> Response:
    """Make a queue of a run's conversations."""
    site, form = site_of(request), await body(request, QueueForm)
    site.require_writing()
    run = await run_in_threadpool(scoring_run, site, form.run)
    queue = QueueRow(
        id=secrets.token_hex(4),
        run=run.id,
        seed=secrets.randbits(32),
        time=now(),
        **form.model_dump(exclude={"run"}),
    )
    await site.store.write([queue])
    return answered(request, f"{links.LABEL}/{queue.id}", {"queue": queue.id})


def sheet(request: Request) -> Response:
    """Show the conversation at hand, and nothing that anybody or any model said of it."""
    site = site_of(request)
    queue, form = queue_of(site.store, request.path_params["queue"]), query(request, SheetForm)
    run = site.run(queue.run)
    left = left_of(site.store, queue, lens_for(site, run))
    lease = lease_of(site.store, form.lease) if form.lease else None
    if lease and lease.queue != queue.id:
        raise Clash("this lease is of another queue", remedy="ask for the next conversation")
    found = next(conversations_of(site.store, run.id, ids=[lease.conversation]), None) if lease else None
    turns = marked_turns(found.turns, {}) if found else []
    return frame.page(
        "sheet.html",
        site=site.id,
        here="Label",
        queue=queue,
        words=KINDS[queue.kind][0],
        left=left,
        lease=lease,
        turns=turns,
        answered=lease is not None and site.store.value("SELECT label FROM sheets WHERE lease = ?", [lease.id]),
        before=_before(site, queue, lease),
    )


def _before(site: Site, queue: QueueRow, lease: LeaseRow | None) -> str | None:
    """Return the lease that its annotator answered last, to change the answer."""
    if lease is None:
        return None
    found: str | None = site.store.value(
        "SELECT s.lease FROM sheets AS s JOIN leases AS l ON l.id = s.lease WHERE l.queue = ? AND l.annotator = ? "
        "AND l.id <> ? ORDER BY s.rowid DESC LIMIT 1",
        [queue.id, lease.annotator, lease.id],
    )
    return found


async def give_next(request: Request) -> Response:
    """Give an annotator the next conversation of a queue."""
    site, form = site_of(request), await body(request, NextForm)
    site.require_writing()
    queue = await run_in_threadpool(queue_of, site.store, request.path_params["queue"])
    return await _next(request, site, queue, form.who)


async def _next(request: Request, site: Site, queue: QueueRow, who: str) -> Response:
    async with site.turn:
        lens = await run_in_threadpool(lambda: lens_for(site, site.run(queue.run)))
        lease = await run_in_threadpool(next_lease, site.store, queue, lens, who)
        if lease and not site.store.value("SELECT id FROM leases WHERE id = ?", [lease.id]):
            await site.store.write([lease])
    address = links.address(f"{links.LABEL}/{queue.id}", lease=lease.id if lease else None)
    return answered(request, address, {"lease": lease and lease.id, "conversation": lease and lease.conversation})


async def keep(request: Request) -> Response:
    """Keep an answer; it is on the disk before this answers."""
    site, form = site_of(request), await body(request, LabelForm)
    site.require_writing()
    if (form.value is None) == (not form.skip):
        raise Fault("give a value, or why you skip it", remedy="value: up or down; skip: a reason")
    async with site.turn:
        lease = await run_in_threadpool(lease_of, site.store, form.lease)
        require_open(lease, form.who)
        replaced = site.store.value("SELECT label FROM sheets WHERE lease = ? ORDER BY rowid DESC LIMIT 1", [lease.id])
        queue = await run_in_threadpool(queue_of, site.store, lease.queue)
        label = LabelRow(
            annotator=form.who,
            text_hash=lease.text_hash,
            conversation=lease.conversation,
            run=queue.run,
            question=QUESTION,
            value=packed(form.value),
            drawn=lease.drawn,
        )
        kept = SheetRow(label.id, lease.id, queue.id, form.skip, form.comment, replaced or "")
        await site.store.write([label, kept])
    if request.headers.get("content-type", "").startswith("application/json"):
        return JSONResponse({"ok": True, "label": label.id, "replaces": replaced})
    return await _next(request, site, queue, form.who)


def agree(request: Request) -> Response:
    """Show how far annotators agree, with each other and with the log."""
    site = site_of(request)
    query(request, Nothing)
    said = opinions(site.store, QUESTION)
    people = [one for one in said if one.source == "person"]
    return frame.page(
        "agreement.html",
        site=site.id,
        here="Label",
        all=agreement(people),
        pairs=between(people),
        log=agreement([*people, *_of_log(site, people)]),
        n=len(people),
        random=sum(one.drawn == "random" for one in people),
        disputed=len(disputed(said)),
    )


def _of_log(site: Site, people: list[Opinion]) -> list[Opinion]:
    """Return the log's thumbs of the labeled texts, as an annotator's."""
    found = []
    for run in {one.run for one in people}:
        lens = lens_for(site, site.run(run))
        texts = {one.text_hash: one for one in people if one.run == run}
        for row, text in enumerate(lens.hashes):
            if text in texts and lens.label[row] >= 0:
                value = "up" if lens.label[row] else "down"
                found.append(Opinion("(log)", text, lens.ids[row], run, value, "log", ""))
    return found


def adjudicate(request: Request) -> Response:
    """Show the first text on which annotators differ, without their names."""
    site = site_of(request)
    query(request, Nothing)
    left = disputed(opinions(site.store, QUESTION))
    text, said = next(iter(left.items()), ("", []))
    found = next(conversations_of(site.store, said[0].run, ids=[said[0].conversation]), None) if said else None
    turns = marked_turns(found.turns, {}) if found else []
    answers = [(chr(ord("A") + place % 26), one.value) for place, one in enumerate(said)]
    return frame.page(
        "adjudicate.html", site=site.id, here="Label", text=text, answers=answers, turns=turns, left=len(left)
    )


async def decide(request: Request) -> Response:
    """Keep a decision as a label of its own."""
    site, form = site_of(request), await body(request, DecisionForm)
    site.require_writing()
    async with site.turn:
        said = disputed(await run_in_threadpool(opinions, site.store, QUESTION)).get(form.text)
        if said is None:
            raise Clash("the annotators no longer disagree about this text", remedy="go on with the next one")
        label = LabelRow(
            annotator=form.who,
            text_hash=form.text,
            conversation=said[0].conversation,
            run=said[0].run,
            question=QUESTION,
            value=packed(form.value),
            source="adjudicated",
        )
        await site.store.write([label, SheetRow(label.id, "", "", "", form.reason, "")])
    return answered(request, links.ADJUDICATE, {"label": label.id})


def export(request: Request) -> Response:
    """Send labels as a log for `learn`, or as a table for `calibrate`."""
    site, form = site_of(request), query(request, ExportForm)
    sources = form.sources.split(",")
    said = [one for one in opinions(site.store, QUESTION) if one.source in sources]
    said = [one for one in said if form.drawn == "all" or one.drawn == form.drawn]
    if form.shape == "long":
        return _file("judgments.csv", "text/csv", _long(said))
    return _file("labels.jsonl", "application/x-ndjson", "".join(_log_rows(site, list(settled(said).values()))))


def _log_rows(site: Site, said: list[Opinion]) -> Iterator[str]:
    for run in sorted({one.run for one in said}):
        mine = {one.conversation: one for one in said if one.run == run}
        for found in conversations_of(site.store, run, ids=list(mine)):
            yield json.dumps(_log_row(found, mine[found.id]), ensure_ascii=False) + "\n"


def _log_row(found: Conversation, said: Opinion) -> dict[str, object]:
    row: dict[str, object] = {"id": found.id, "messages": messages_of(found), "thumbs": said.value}
    return row | {"source": said.source, "judge": said.annotator} | ({"group": found.group} if found.group else {})


def _long(said: list[Opinion]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["text_id", "question", "judge", "answer", "source", "drawn"])
    for one in said:
        writer.writerow(
            [escape_formula(v) for v in (one.conversation, QUESTION, one.annotator, one.value, one.source, one.drawn)]
        )
    return text.getvalue()


def _file(name: str, kind: str, text: str) -> Response:
    return Response(text, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


ROUTES = [
    Route(links.LABEL, queues),
    Route(links.AGREEMENT, agree),
    Route(links.ADJUDICATE, adjudicate),
    Route(f"{links.LABEL}/{{queue}}", sheet),
    Route("/api/queues", once(make_queue), methods=["POST"]),
    Route("/api/queues/{queue}/next", once(give_next), methods=["POST"]),
    Route("/api/labels", once(keep), methods=["POST"]),
    Route("/api/adjudications", once(decide), methods=["POST"]),
    Route("/api/export", export),
]
