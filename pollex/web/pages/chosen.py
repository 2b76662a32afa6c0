"""Conversations that somebody puts into a queue: one while reading it, or those that are ticked in a list."""

from __future__ import annotations

import secrets

from pydantic import Field
from starlette.concurrency import run_in_threadpool

from pollex.store.desk import ChosenRow
from pollex.store.resume import conversations_of
from pollex.store.runs import Run
from pollex.store.tables import QueueRow, now
from pollex.web import links
from pollex.web.faults import Fault, NotThere
from pollex.web.forms import Form
from pollex.web.queues import CHOSEN, queue_of, queues_of
from pollex.web.site import Site
from pollex.web.views import Done, post

MOST = 500


class ChosenForm(Form):
    """Conversations for a queue, or for a new one; `of` and `who` are those of the page of one conversation."""

    run: str
    id: tuple[str, ...] = Field(max_length=MOST)
    queue: str = ""
    name: str = Field("", max_length=80)
    reading: bool = False
    of: str = ""
    who: str = ""


@post("/api/chosen", ChosenForm)
async def choose(site: Site, form: ChosenForm) -> Done:
    """Put conversations into a queue."""
    if not form.id:
        raise Fault("no conversation is ticked", remedy="tick those that are to be in the queue")
    run = await run_in_threadpool(site.run, form.run)
    async with site.turn:
        queue = await run_in_threadpool(_queue, site, run, form)
        rows = await run_in_threadpool(_rows, site, queue, form.id)
        new = not await run_in_threadpool(_is_kept, site, queue)
        await site.store.write([queue, *rows] if new else rows)
    back = links.conversation(run.id, form.id[0], of=form.of, who=form.who) if form.reading else ""
    return back or f"{links.LABEL}/{queue.id}", {"queue": queue.id, "added": len(rows)}


def _queue(site: Site, run: Run, form: ChosenForm) -> QueueRow:
    if not form.queue:
        if not form.name.strip():
            raise Fault("the new queue has no name", remedy="give it one, or choose a queue that is there")
        return QueueRow(secrets.token_hex(4), form.name.strip(), CHOSEN, run.id, 0.0, 1, secrets.randbits(32), now())
    queue = queue_of(site.store, form.queue)
    if queue.run != run.id:
        raise Fault(f"this queue is of {queue.run}", remedy="choose one of the same run")
    return queue


def _is_kept(site: Site, queue: QueueRow) -> bool:
    return bool(site.store.value("SELECT 1 FROM queues WHERE id = ?", [queue.id]))


def _rows(site: Site, queue: QueueRow, ids: tuple[str, ...]) -> list[ChosenRow]:
    """Return rows of the conversations that are not in the queue yet."""
    kept = {row["conversation"] for row in site.store.rows(IN_QUEUE, [queue.id])}
    wanted = [id_ for id_ in dict.fromkeys(ids) if id_ not in kept]
    found = {one.id: one.text_hash for one in conversations_of(site.store, queue.run, ids=wanted)}
    if missing := [id_ for id_ in wanted if id_ not in found]:
        raise NotThere(f"this run has no conversation {missing[0]!r}", remedy="its list has those there are")
    return [ChosenRow(queue.id, found[id_], id_, now()) for id_ in wanted]


IN_QUEUE = "SELECT conversation FROM chosen WHERE queue = ?"
OF_CONVERSATION = """
    SELECT q.id, q.name FROM chosen AS c JOIN queues AS q ON q.id = c.queue WHERE q.run = ? AND c.conversation = ?
    ORDER BY c.rowid
"""


def queues_with(site: Site, run: Run, conversation: str) -> tuple[list[dict[str, str]], list[QueueRow]]:
    """Return the queues that a conversation was put into, and all others of its run."""
    within = site.store.rows(OF_CONVERSATION, [run.id, conversation])
    names = {row["id"] for row in within}
    return within, [queue for queue in queues_of(site.store) if queue.run == run.id and queue.id not in names]
