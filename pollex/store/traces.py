"""Views of past runs: the tree of spans, a conversation's trace, a rubric's origin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pollex.agents.roles import Extraction
from pollex.conversations.conversation import Conversation
from pollex.errors import WrongUse
from pollex.rubrics.answers import Answer, Unanswered
from pollex.rubrics.rubric import Reason, Rubric
from pollex.store.resume import iterate_conversations, read_extractions, read_pool_rubrics
from pollex.store.rows import read_answer_row
from pollex.store.runs import FINISHED_STATUSES
from pollex.store.spans import ERROR_TEXT_OF_CANCELLED_SPAN
from pollex.store.store import Store
from pollex.store.tables import ScoreRow, SpanRow, dump_json, load_json

DECIDING_GRAPH_NODES = frozenset({"calibrate", "fit_rule"})
"""Nodes whose output is what they decided, and why."""


@dataclass
class SpanBranch:
    """All spans of one name and kind in the same place of a run's tree.

    Attributes:
        ms: Their durations added up; those that ran side by side count each.
        longest_ms: Milliseconds of the longest.
        errors: Error text → how many ended with it.
        told: What a node decided, in words.
        branches: What lies inside them, in the order in which it first began.
    """

    name: str
    kind: str
    count: int = 0
    ms: float = 0.0
    longest_ms: float = 0.0
    errors: dict[str, int] = field(default_factory=dict)
    told: str = ""
    branches: list[SpanBranch] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """Number of spans that ended with an error."""
        return sum(self.errors.values())


@dataclass(frozen=True)
class ConversationTrace:
    """Everything that happened to one conversation in one run.

    Attributes:
        asked: Rubric id → its words, for the rubrics among `answers` that are kept.
        extraction: None where none was tried; `score` likewise.
    """

    conversation: Conversation
    side: str
    steps: tuple[SpanRow, ...]
    extraction: Extraction | Unanswered | None
    answers: dict[str, Answer | Unanswered]
    asked: dict[str, str]
    score: ScoreRow | None


@dataclass(frozen=True)
class RubricProvenance:
    """The origin of a rubric: its reasons, and the quoted conversations."""

    rubric: Rubric
    reasons: tuple[Reason, ...]
    conversations: dict[str, Conversation]


NAMES_OF_RESUMABLE_ERRORS = ("LimitReached", "Interrupted", "ModelUnavailable", "ModelRefused")
"""Errors that stop a run, which may be gone on with."""


def build_span_tree(store: Store, run: str) -> list[SpanBranch]:
    """Sum a run's spans by name at each place of the tree.

    What stopped a run that was gone on with since, and came to its end, is no error any more.
    """
    spans = store.rows(
        "SELECT id, parent, name, kind, ms, error, outputs FROM spans WHERE run = ? ORDER BY started, rowid",
        [run],
    )
    status = store.value("SELECT status FROM runs WHERE id = ?", [run])
    for span in spans:
        if status in FINISHED_STATUSES and span["error"].startswith(NAMES_OF_RESUMABLE_ERRORS):
            span["error"] = ""

    span_ids = {span["id"] for span in spans}
    # spans by their parent; None: at the top
    inside: dict[str | None, list[dict[str, object]]] = defaultdict(list)
    for span in spans:
        # A span is written when it ends, so a killed run has spans whose parent never was: they
        # stand on their own.
        inside[span["parent"] if span["parent"] in span_ids else None].append(span)

    return _sum_spans_by_name(inside[None], inside)


def collect_conversation_trace(store: Store, run: str, conversation_id: str) -> ConversationTrace:
    """Everything that happened to a conversation in a run.

    Raises:
        WrongUse: The run did not use it.
    """
    conversations = list(iterate_conversations(store, run, ids=[conversation_id]))
    if not conversations:
        raise WrongUse(
            f"run {run} used no conversation {conversation_id!r}",
            hint="check the id against the log",
        )

    # answers, scores, spans and side of the conversation, in the order of writing
    answers = store.ask(
        run,
        "SELECT * FROM answers WHERE conversation = ? ORDER BY seq",
        [conversation_id],
    )
    scores = store.ask(
        run,
        "SELECT * EXCLUDE (seq) FROM scores WHERE conversation = ? ORDER BY seq",
        [conversation_id],
    )
    spans = store.rows(
        "SELECT * FROM spans WHERE run = ? AND item = ? ORDER BY started, rowid",
        [run, conversation_id],
    )
    sides = store.ask(
        run,
        "SELECT side FROM conversations WHERE id = ? ORDER BY seq",
        [conversation_id],
    )
    rubric_ids = {row["question"] for row in answers}

    asked = {}
    for id_, rubric in read_pool_rubrics(store, run).items():
        if id_ in rubric_ids:
            asked[id_] = rubric.text
    return ConversationTrace(
        conversation=conversations[0],
        side=sides[-1]["side"],
        steps=tuple(
            SpanRow(**row | {name: tuple(load_json(row[name])) for name in ("inputs", "outputs")})
            for row in spans
        ),
        extraction=read_extractions(store, run, conversation=conversation_id).get(conversation_id),
        answers={row["question"]: read_answer_row(row) for row in answers},
        asked=asked,
        score=ScoreRow(**scores[-1]) if scores else None,
    )


def find_rubric_provenance(store: Store, run: str, rubric_id: str) -> RubricProvenance:
    """Return the origin of a rubric of a run.

    Raises:
        WrongUse: The run has no such rubric.
    """
    rubric = read_pool_rubrics(store, run, rubric_id).get(rubric_id)
    if rubric is None:
        raise WrongUse(
            f"run {run} has no rubric {rubric_id!r}",
            hint="`pollex trace` lists what a run made",
        )

    # conversations that its reasons or its quotes name
    reasons = read_reasons_by_id(store, run, rubric.reason_ids)
    reason_conversations = set()
    for reason in reasons:
        reason_conversations.add(reason.conversation_id)
    ids = {quote.conversation_id for quote in rubric.quotes} | reason_conversations
    conversations = iterate_conversations(store, run, ids=sorted(ids))

    return RubricProvenance(
        rubric,
        reasons,
        {conversation.id: conversation for conversation in conversations},
    )


def read_reasons_by_id(store: Store, run: str, ids: Sequence[str]) -> tuple[Reason, ...]:
    """Return the reasons with these ids, in their order; unknown ones are skipped."""
    rows = store.rows(
        """SELECT reason.value AS reason FROM facts, json_each(facts.payload, '$.reasons') AS reason
        WHERE run = ? AND kind = 'extraction' AND reason.value ->> 'id' IN (SELECT value FROM json_each(?))
        ORDER BY facts.rowid""",
        [run, dump_json(list(ids))],
    )
    reasons = {}
    for reason in (Reason.model_validate_json(row["reason"]) for row in rows):
        reasons[reason.id] = reason
    known_reasons = []
    for id_ in ids:
        if id_ in reasons:
            known_reasons.append(reasons[id_])
    return tuple(known_reasons)


def _sum_spans_by_name(
    spans: Iterable[Mapping[str, Any]], inside: Mapping[str | None, Sequence[Mapping[str, object]]]
) -> list[SpanBranch]:
    # spans of one name and kind are one branch
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for span in spans:
        groups[span["name"], span["kind"]].append(span)

    branches = []
    for (name, kind), alike in groups.items():
        branch = SpanBranch(name, kind, count=len(alike))
        branch.ms = sum(span["ms"] for span in alike)
        branch.longest_ms = max(span["ms"] for span in alike)
        if name in DECIDING_GRAPH_NODES:
            branch.told = ": ".join(load_json(alike[-1]["outputs"]))
        else:
            branch.told = ""

        for span in alike:
            if span["error"] not in ("", ERROR_TEXT_OF_CANCELLED_SPAN):
                branch.errors[span["error"]] = branch.errors.get(span["error"], 0) + 1
        branch.branches = _sum_spans_by_name(
            (child for span in alike for child in inside.get(span["id"], ())),
            inside,
        )
        branches.append(branch)

    return branches
