"""Labeling: queues, and one conversation at a time by keys alone."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pollex.conversations.conversation import Conversation
from pollex.formats.questionnaires import (
    SheetQuestion,
    list_bundled_questionnaires,
    load_questionnaire,
)
from pollex.reports.transcript import mark_turns
from pollex.store.labels import RANDOM_DRAW
from pollex.store.resume import iterate_conversations
from pollex.store.runs import Run
from pollex.store.tables import (
    LabelRow,
    LabelSheetRow,
    LeaseRow,
    QueueRow,
    Row,
    dump_json,
    format_current_time,
    load_json,
)
from pollex.web import links
from pollex.web.faults import NotFound, RequestError, VersionConflict
from pollex.web.forms import AnswerFields, LongText, Person, PrefixedFields
from pollex.web.guests import find_guest, list_guest_links, require_guest_name
from pollex.web.listing import find_scoring_run, load_run_columns
from pollex.web.logs_at_hand import find_log_of_run
from pollex.web.names import read_name
from pollex.web.questions import (
    make_rubric_questions,
    pack_sheet,
    parse_questionnaire,
    read_sheet_answers,
    unpack_sheet,
)
from pollex.web.queues import (
    QUEUE_KINDS,
    THUMB_QUESTION,
    UNDONE_ANSWER,
    choose_next_lease,
    count_progress,
    count_share_of_annotator,
    get_lease,
    get_queue,
    list_queues,
    repeat_answers,
)
from pollex.web.run_logs import identify_logs_of_run, name_log_of_run
from pollex.web.said import keep_new_answers
from pollex.web.site import SCORING_COMMANDS, Site, count_seconds_since
from pollex.web.views import NextPage, PageData, page, post

ShareNumber = Annotated[float, Field(ge=0, le=1)]
PeopleCount = Annotated[int, Field(ge=1, le=20)]
SkipReason = Annotated[str, Field(max_length=500)]
Milliseconds = Annotated[float, Field(ge=0)]


@page(links.LABEL_PATH, "queues.html", here="Label")
def show_queues(site: Site) -> PageData:
    """List the queues, with how far each is."""
    queue_rows = []
    for queue in list_queues(site.store):
        queue_rows.append(
            (
                queue,
                QUEUE_KINDS[queue.kind][0],
                count_progress(site.store, queue, load_run_columns(site, site.run(queue.run))),
            )
        )

    scored = []
    for run in site.runs():
        if run.command in SCORING_COMMANDS:
            scored.append(run)

    return {
        "queues": queue_rows,
        "logs": {queue.run: name_log_of_run(site.run(queue.run)) for queue, _, _ in queue_rows},
        "kinds": QUEUE_KINDS,
        "runs": scored,
        "site_of": site,
        "learnings": [] if site.read_only else list_learnings_from_labels(site),
        "bundled": list_bundled_questionnaires(),
    }


MIN_NEW_LABELS = 20
"""New labels of a log after which it is worth to learn from it."""

NEW_LABELS_QUERY = """
    SELECT count(DISTINCT text_hash) FROM labels
    WHERE question = ? AND value <> ? AND time > ? AND run IN (SELECT value FROM json_each(?))
"""


@dataclass(frozen=True)
class LearningFromLabels:
    """A log whose new labels are enough to learn from it.

    Attributes:
        n: How many labels are newer than its last rubric set.
        log: Its name; empty if unknown.
        again: Whether a rubric set was learned from it before.
        address: The form that learns from it.
    """

    n: int
    log: str
    again: bool
    address: str


def list_learnings_from_labels(site: Site, only_run: Run | None = None) -> list[LearningFromLabels]:
    """Return the logs with enough labels that are newer than their own last rubric set.

    Args:
        only_run: A run on the log that alone counts; None for all logs.
    """
    # labels of all runs on one log are labels of that log
    runs = site.runs()
    runs_by_log: dict[frozenset[str], list[Run]] = {}
    for run in runs:
        runs_by_log.setdefault(identify_logs_of_run(run), []).append(run)
    if only_run is not None:
        logs = identify_logs_of_run(only_run)
        runs_by_log = {logs: runs_by_log[logs]}

    learnings = []
    for logs, runs_on_log in runs_by_log.items():
        # of logs in memory nobody knows which they are: any learning may have been from them
        learned = find_last_learning(runs_on_log if logs else runs)
        ids = dump_json([run.id for run in runs_on_log])
        number = site.store.value(NEW_LABELS_QUERY, [THUMB_QUESTION, dump_json(None), learned, ids])
        if number >= MIN_NEW_LABELS:
            log = find_log_of_run(site, runs_on_log[0])
            learnings.append(
                LearningFromLabels(
                    number,
                    name_log_of_run(runs_on_log[0]),
                    bool(learned),
                    links.link_to_form("learn", log=log, people=True),
                )
            )

    return sorted(learnings, key=lambda learning: -learning.n)


def find_last_learning(runs: Iterable[Run]) -> str:
    """Return when one of some runs last began to learn rubrics; empty where none did."""
    return max((run.started for run in runs if run.command in ("learn", "refit")), default="")


@post("/api/queues")
def make_queue(
    site: Site,
    name: Person,
    kind: Literal["telling", "unsure", "window", "differs", "random", "filter"] = "unsure",
    run: str = "",
    random_share: ShareNumber = 0.2,
    repeat_share: ShareNumber = 0.05,
    overlap: PeopleCount = 1,
    filter_: LongText = "",
    ask: str = "thumb",
    questionnaire: str = "",
) -> NextPage:
    """Make a queue of a run's conversations."""
    of = find_scoring_run(site, run)
    # questions are copied into the queue, so that they stay when the set changes
    sheet = pack_sheet(_list_questions(site, of, ask, questionnaire))
    about = (
        secrets.token_hex(4),
        name,
        kind,
        of.id,
        random_share,
        overlap,
        secrets.randbits(32),
        format_current_time(),
    )
    queue = QueueRow(*about, filter_, sheet, repeat_share)
    site.store.keep([queue])

    return f"{links.LABEL_PATH}/{queue.id}", {"queue": queue.id}


def _list_questions(
    site: Site,
    run: Run,
    ask: str,
    questionnaire: str,
) -> list[SheetQuestion]:
    """Return the questions of a new queue; none for a thumb."""
    if ask == "questionnaire":
        return parse_questionnaire(questionnaire)
    if ask == "thumb":
        return []
    if ask in list_bundled_questionnaires():
        return load_questionnaire(ask)
    if ask != "rubrics":
        raise RequestError(
            f"there is no questionnaire {ask!r:.60}",
            hint="ask a thumb, the run's rubrics, or a questionnaire",
        )
    if (named := site.set_of(run)) is None:
        raise NotFound(
            "the rubric set of this run isn't here",
            hint="name its file at the start",
            option="rubrics",
        )

    return make_rubric_questions(named.rubric_set)


@page(f"{links.LABEL_PATH}/{{queue}}", "sheet.html", here="Label")
def show_sheet(
    site: Site,
    queue: QueueRow,
    request: Request,
    lease: str = "",
) -> PageData:
    """Show the conversation at hand, and nothing that anybody or any model said of it."""
    run = site.run(queue.run)
    left = count_progress(site.store, queue, load_run_columns(site, run))
    lease_row = None
    if lease:
        lease_row = get_lease(site.store, lease)

    # an address may be typed by hand
    if lease_row and lease_row.queue != queue.id:
        raise VersionConflict(
            "this lease is of another queue",
            hint="ask for the next conversation",
        )

    # without a lease the page only shows how far the queue is
    shown = None
    if lease_row:
        shown = next(
            iterate_conversations(site.store, run.id, ids=[lease_row.conversation]),
            None,
        )

    if shown:
        turns = mark_turns(shown.turns, {})
    else:
        turns = []

    # questions that don't apply to this conversation are left out
    questions = []
    for question in unpack_sheet(queue.sheet):
        if shown is None or question.applies_to(shown):
            questions.append(question)

    # what is left for somebody whose name is known
    own_share = None
    guest = find_guest(request)
    name = guest.name if guest else read_name(request)
    if shown is None and name:
        own_share = count_share_of_annotator(site.store, queue, load_run_columns(site, run), name)

    own_answers = _read_own_answers(site, lease_row) if lease_row else {}
    return {
        "own_share": own_share,
        "learnings": [] if guest or site.read_only else list_learnings_from_labels(site, run),
        "words": QUEUE_KINDS[queue.kind][0],
        "left": left,
        "lease": lease_row,
        "questions": questions,
        "turns": turns,
        "sources": shown.sources if shown else (),
        "own_answers": own_answers,
        # the main question is the last one
        "own_said": [NO_ANSWER, *own_answers.values()][-1],
        "before": _find_lease_before(site, queue, lease_row, name),
        "guest": guest,
        "guests": list_guest_links(site.store, site.seal, f"{links.LABEL_PATH}/{queue.id}"),
    }


_LEASE_BEFORE_QUERY = """
    SELECT l.id FROM leases AS l WHERE queue = ? AND annotator = ? AND id IN (SELECT lease FROM sheets)
        AND rowid < coalesce((SELECT rowid FROM leases WHERE id = ?), 9e18) ORDER BY rowid DESC LIMIT 1
"""


def _find_lease_before(
    site: Site,
    queue: QueueRow,
    lease: LeaseRow | None,
    name: str,
) -> str | None:
    """Return the lease that its annotator answered before another one, to change the answer.

    Args:
        lease: The other one; None for the last that somebody of this name answered.
    """
    who = lease.annotator if lease else name
    of_lease = [queue.id, who, lease.id if lease else ""]
    earlier_lease: str | None = site.store.value(_LEASE_BEFORE_QUERY, of_lease)
    return earlier_lease


_OWN_ANSWERS_QUERY = """
    SELECT b.question, b.value, s.skip, s.comment FROM sheets AS s JOIN labels AS b ON b.id = s.label
    WHERE s.lease = ? ORDER BY s.rowid
"""


@dataclass(frozen=True)
class OwnAnswer:
    """What a person said to a question; `skip` is why they said nothing."""

    value: str | float | None
    skip: str
    comment: str


NO_ANSWER = OwnAnswer(None, "", "")


def _read_own_answers(site: Site, lease: LeaseRow) -> dict[str, OwnAnswer]:
    """Return what an annotator said of a conversation, by question; nothing if they took it back."""
    answers = {}
    for row in site.store.rows(_OWN_ANSWERS_QUERY, [lease.id]):
        answers[row["question"]] = OwnAnswer(load_json(row["value"]), row["skip"], row["comment"])

    is_undone = any(answer.skip == UNDONE_ANSWER for answer in answers.values())
    return {} if is_undone else answers


@post("/api/queues/{queue}/next")
def lead_to_next_sheet(
    site: Site,
    queue: QueueRow,
    request: Request,
    who: Person,
) -> NextPage:
    """Give an annotator the next conversation of a queue."""
    require_guest_name(request, who, queue.id)
    return _lease_next_conversation(site, queue, who)


def _lease_next_conversation(site: Site, queue: QueueRow, who: str) -> NextPage:
    # one after another, so that no two people get the same lease
    with site.turn:
        lease, passed = choose_next_lease(
            site.store,
            queue,
            load_run_columns(site, site.run(queue.run)),
            who,
        )
        # answers to texts that chance drew afterwards count as drawn at random from now on
        rows: list[Row] = [*repeat_answers(site.store, queue, passed)]
        # a lease that goes on is in the store already
        if lease and not site.store.value("SELECT id FROM leases WHERE id = ?", [lease.id]):
            rows.append(lease)
        if rows:
            site.store.keep(rows)

    address = links.make_address(
        f"{links.LABEL_PATH}/{queue.id}",
        lease=lease.id if lease else None,
    )
    return address, {"lease": lease and lease.id, "conversation": lease and lease.conversation}


@post("/api/labels")
def keep_answers(
    site: Site,
    request: Request,
    lease_id: str,
    who: Person,
    answers: AnswerFields,
    value: Literal["up", "down"] | None = None,
    skip: SkipReason = "",
    comment: LongText = "",
    shown_ms: Milliseconds = 0,
) -> NextPage | Response:
    """Keep an answer to each question, or a thumb, or why there is none; it is on the disk before this answers."""
    with site.turn:
        lease = require_lease(site, request, lease_id, who)
        queue = get_queue(site.store, lease.queue)
        # the label that this answer replaces, by question: an answer can be changed
        earlier_labels = site.store.rows(LABELS_OF_LEASE_QUERY, [lease.id])
        before = {row["question"]: row["id"] for row in earlier_labels}
        # an answer that counted as drawn at random still does once it is changed
        if RANDOM_DRAW in {row["drawn"] for row in earlier_labels}:
            drawn = RANDOM_DRAW
        else:
            drawn = lease.drawn

        # milliseconds: while the page was shown, and since the lease began
        took = shown_ms or None, 1000 * count_seconds_since(lease.time)
        rows: list[tuple[LabelRow, LabelSheetRow]] = []
        conversation = next(
            iterate_conversations(
                site.store,
                queue.run,
                ids=[lease.conversation],
            )
        )
        # for each question a label, and what the sheet says of it
        for question, answer, why in _read_answers(
            unpack_sheet(queue.sheet), conversation, answers, value, skip
        ):
            about = who, lease.text_hash, lease.conversation, queue.run, question, dump_json(answer)
            label = LabelRow(*about, drawn=drawn)
            sheet = LabelSheetRow(
                label.id,
                lease.id,
                queue.id,
                why,
                comment,
                before.get(question, ""),
                *took,
            )
            rows.append((label, sheet))

        # the main question is the last one
        label_id = keep_new_answers(site.store, rows)[-1]

    # programs get the label's id, people the next conversation
    if request.headers.get("content-type", "").startswith("application/json"):
        replaces = before.get(THUMB_QUESTION)
        return JSONResponse(
            {
                "ok": True,
                "label": label_id,
                "replaces": None if replaces == label_id else replaces,
            }
        )

    return _lease_next_conversation(site, queue, who)


@post("/api/labels/{id}/undo")
def undo_answers(
    site: Site,
    id_: str,
    request: Request,
    who: Person,
) -> NextPage:
    """Take a sheet's answers back; its conversation comes again while its lease lasts."""
    with site.turn:
        lease_id = site.store.value("SELECT lease FROM sheets WHERE label = ?", [id_])
        if not lease_id:
            raise NotFound(
                "no queue gave such a label",
                hint="take back one that a queue's sheet kept",
            )

        lease = require_lease(site, request, lease_id, who)
        run = get_queue(site.store, lease.queue).run
        # the answers that hold now, by question: later rows replace earlier ones
        label_ids = {}
        for row in site.store.rows(LABELS_OF_LEASE_QUERY, [lease.id]):
            label_ids[row["question"]] = row["id"]

        if id_ not in label_ids.values():
            raise VersionConflict(
                "this answer was changed since",
                hint="take the newer one back",
            )

        # an answer without a value takes back the one before it
        rows: list[Row] = []
        for question, before in label_ids.items():
            label = LabelRow(
                who,
                lease.text_hash,
                lease.conversation,
                run,
                question,
                dump_json(None),
                drawn=lease.drawn,
            )
            rows += [
                label,
                LabelSheetRow(label.id, lease.id, lease.queue, UNDONE_ANSWER, replaces=before),
            ]

        site.store.keep(rows)

    return links.make_address(f"{links.LABEL_PATH}/{lease.queue}", lease=lease.id), {
        "lease": lease.id
    }


def require_lease(
    site: Site,
    request: Request,
    lease_id: str,
    who: str,
) -> LeaseRow:
    """Return a lease that somebody holds.

    Raises:
        VersionConflict: It is another's, or over.
        Forbidden: The guest who asks is somebody else.
    """
    lease = get_lease(site.store, lease_id)
    require_guest_name(request, who, lease.queue)
    if lease.annotator != who:
        raise VersionConflict(
            "another annotator has this conversation",
            hint="ask for the next one",
        )

    # nobody else gets what was answered: that can be changed at any time
    if lease.until < format_current_time() and not _read_own_answers(site, lease):
        raise VersionConflict(
            "you had this conversation for more than 15 minutes",
            hint="ask for the next one",
        )

    return lease


LABELS_OF_LEASE_QUERY = """
    SELECT l.question, l.id, l.drawn FROM sheets AS s JOIN labels AS l ON l.id = s.label WHERE s.lease = ?
    ORDER BY s.rowid
"""


def _read_answers(
    questions: Sequence[SheetQuestion],
    conversation: Conversation,
    answers: PrefixedFields,
    value: str | None,
    skip: str,
) -> list[tuple[str, str | float | None, str]]:
    """Return question, value, and why there is none, for each question of a sheet; all that apply are wanted."""
    # who skips the conversation skips all of its questions
    if skip and value is None:
        return [(question.id, None, skip) for question in questions] or [
            (THUMB_QUESTION, None, skip)
        ]
    # a queue without questions asks for a thumb
    if not questions:
        if value is None or skip:
            raise RequestError(
                "give a value, or why you skip it",
                hint="value: up or down; skip: a reason",
            )

        return [(THUMB_QUESTION, value, "")]

    applying = []
    for question in questions:
        if question.applies_to(conversation):
            applying.append(question)

    # a question that doesn't apply has its own reason, which nobody types
    by_rule: list[tuple[str, str | float | None, str]] = []
    for question in questions:
        if question not in applying:
            by_rule.append((question.id, None, question.skip))

    return [*by_rule, *read_sheet_answers(applying, answers)]  # the main question stays last
