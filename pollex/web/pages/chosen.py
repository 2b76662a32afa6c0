"""What somebody does while reading: a thumb, or conversations put into a queue."""

import secrets
from typing import Annotated, Literal

from pydantic import Field

from pollex.store.labels import VOLUNTARY_SELECTION, read_opinions
from pollex.store.resume import iterate_conversations
from pollex.store.runs import Run
from pollex.store.tables import (
    ChosenConversationRow,
    LabelRow,
    LabelSheetRow,
    QueueRow,
    dump_json,
    format_current_time,
)
from pollex.web import links
from pollex.web.faults import NotFound, RequestError, VersionConflict
from pollex.web.forms import LongText, Person, ShortText
from pollex.web.queues import CHOSEN_KIND, THUMB_QUESTION, get_queue, list_queues
from pollex.web.said import keep_new_answers
from pollex.web.site import Site
from pollex.web.views import NextPage, post

ConversationIds = Annotated[tuple[str, ...], Field(max_length=500)]


@post("/api/chosen")
def put_into_queue(
    site: Site,
    run: Run,
    id_: ConversationIds,
    queue: str = "",
    name: ShortText = "",
    reading: bool = False,
    of: str = "",
    who: str = "",
) -> NextPage:
    """Put conversations into a queue."""
    if not id_:
        raise RequestError(
            "no conversation is ticked",
            hint="tick those that are to be in the queue",
        )

    # nobody else fills the queue between the look at it and the write
    with site.turn:
        into = _get_or_make_queue(site, run, queue, name.strip())
        rows = _make_rows(site, into, id_)
        # a new queue is kept together with its first conversations
        site.store.keep(rows if queue else [into, *rows])

    back = ""
    if reading:
        back = links.link_to_conversation(run.id, id_[0], of=of, who=who)

    return back or f"{links.LABEL_PATH}/{into.id}", {"queue": into.id, "added": len(rows)}


def _get_or_make_queue(
    site: Site,
    run: Run,
    queue_id: str,
    name: str,
) -> QueueRow:
    if not queue_id:
        if not name:
            raise RequestError(
                "the new queue has no name",
                hint="give it one, or choose a queue that is there",
            )

        # nothing at random, and one person for each conversation
        return QueueRow(
            secrets.token_hex(4),
            name,
            CHOSEN_KIND,
            run.id,
            0.0,
            1,
            secrets.randbits(32),
            format_current_time(),
        )

    queue = get_queue(site.store, queue_id)
    if queue.run != run.id:
        raise RequestError(
            f"this queue is of {queue.run}",
            hint="choose one of the same run",
        )

    return queue


def _make_rows(site: Site, queue: QueueRow, ids: tuple[str, ...]) -> list[ChosenConversationRow]:
    """Return rows of the conversations that are not in the queue yet."""
    queued = set()
    for row in site.store.rows(CONVERSATIONS_IN_QUEUE_QUERY, [queue.id]):
        queued.add(row["conversation"])

    # each once, in the order in which they were ticked
    ids_wanted = []
    for id_ in dict.fromkeys(ids):
        if id_ not in queued:
            ids_wanted.append(id_)

    text_hash_by_id = {}
    for conversation in iterate_conversations(site.store, queue.run, ids=ids_wanted):
        text_hash_by_id[conversation.id] = conversation.text_hash

    if missing := [id_ for id_ in ids_wanted if id_ not in text_hash_by_id]:
        raise NotFound(
            f"this run has no conversation {missing[0]!r}",
            hint="its list has those there are",
        )

    rows: list[ChosenConversationRow] = []
    for id_ in ids_wanted:
        rows.append(
            ChosenConversationRow(queue.id, text_hash_by_id[id_], id_, format_current_time())
        )

    return rows


CONVERSATIONS_IN_QUEUE_QUERY = "SELECT conversation FROM chosen WHERE queue = ?"
QUEUES_OF_CONVERSATION_QUERY = """
    SELECT q.id, q.name FROM chosen AS c JOIN queues AS q ON q.id = c.queue WHERE q.run = ? AND c.conversation = ?
    ORDER BY c.rowid
"""


def list_queues_with(
    site: Site,
    run: Run,
    conversation: str,
) -> tuple[list[dict[str, str]], list[QueueRow]]:
    """Return the queues that a conversation was put into, and all others of its run."""
    within = site.store.rows(QUEUES_OF_CONVERSATION_QUERY, [run.id, conversation])
    names = {row["id"] for row in within}
    other_queues = []
    for queue in list_queues(site.store):
        if queue.run == run.id and queue.id not in names:
            other_queues.append(queue)

    return within, other_queues


@post("/api/thumbs")
def keep_thumb(
    site: Site,
    run: Run,
    id_: str,
    who: Person,
    value: Literal["up", "down"],
    comment: LongText = "",
    of: str = "",
) -> NextPage:
    """Keep a thumb; one that was given blind, in a queue, is not changed by it."""
    conversation = next(iterate_conversations(site.store, run.id, ids=[id_]), None)
    if conversation is None:
        raise NotFound(
            "this run has no such conversation",
            hint="the list of its conversations has those there are",
        )

    with site.turn:
        opinions_here = read_opinions(site.store, THUMB_QUESTION)
        own_opinion = None
        for opinion in opinions_here:
            if (opinion.annotator, opinion.text_hash) == (who, conversation.text_hash):
                own_opinion = opinion
                break
        if own_opinion is not None and own_opinion.drawn != VOLUNTARY_SELECTION:
            what = f"{who} has labeled it before, without seeing its score"
            raise VersionConflict(what, hint="the queue is where that answer is changed")
        # the score was seen: the label is voluntary, and no figure counts it
        label = LabelRow(
            who,
            conversation.text_hash,
            conversation.id,
            run.id,
            THUMB_QUESTION,
            dump_json(value),
            drawn=VOLUNTARY_SELECTION,
        )
        # what was seen: the score, and labels of others where there are any
        others = False
        for opinion in opinions_here:
            if opinion.text_hash == conversation.text_hash and opinion.annotator != who:
                others = True
                break
        saw = ("prediction", "others") if others else ("prediction",)
        (label_kept,) = keep_new_answers(
            site.store,
            [(label, LabelSheetRow(label.id, comment=comment, saw=saw))],
        )

    back = links.link_to_conversation(run.id, conversation.id, of=of, who=who)
    return back, {"label": label_kept}
