"""Look back at runs, their traces, and where rubrics came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pollex.conversations.conversation import Conversation
from pollex.errors import BadRubrics, PollexError
from pollex.graphs.context import Progress
from pollex.rubrics.answers import Question
from pollex.rubrics.records import ChosenRubric, DroppedRubric
from pollex.rubrics.rubric import Reason
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.event_loop import complete
from pollex.services.options import RunOptions
from pollex.store.originals import originals_of
from pollex.store.resume import conversations_of, find_run, runs
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.store.traces import Branch, ConversationTrace, conversation_trace, provenance, run_tree
from pollex.text import writable


@dataclass(frozen=True)
class RunRow:
    """A run in the list of runs.

    Attributes:
        logs: Files that it read.
        rubrics: The rubric set that it wrote or used; empty where there is none.
        seconds: None while it is unfinished.
        auc: Of held-out conversations, or of those that it was evaluated on; None where it measured none.
    """

    run: Run
    logs: tuple[str, ...]
    rubrics: str
    seconds: float | None
    auc: float | None

    @classmethod
    def of(cls, run: Run) -> RunRow:
        """Read the row from what the store keeps of a run."""
        given, result = run.arguments, run.result if isinstance(run.result, dict) else {}
        rubrics = given.get("rubrics") or (given.get("out") if run.command == "learn" else "") or ""
        ended = None if run.finished is None else _at(run.finished) - _at(run.started)
        seconds = None if ended is None else ended.total_seconds()
        return cls(run, tuple(map(str, given.get("logs") or ())), str(rubrics), seconds, result.get("auc"))

    def as_json(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        found = {"logs": list(self.logs), "rubrics": self.rubrics, "seconds": self.seconds, "auc": self.auc}
        return self.run.model_dump(mode="json") | found


def _at(time: str) -> datetime:
    return datetime.fromisoformat(time)


@dataclass(frozen=True)
class RunList:
    """All runs of a store, the last one last."""

    runs: tuple[RunRow, ...]
    complete = True

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that `--json` prints."""
        return {"runs": [row.as_json() for row in self.runs]}


@dataclass(frozen=True)
class RunTree:
    """Nodes and calls of a run, summed by name at each place of the tree."""

    run: Run
    branches: tuple[Branch, ...]
    complete = True

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that `--json` prints."""
        return {"run": self.run.model_dump(mode="json"), "tree": [branch_json(branch) for branch in self.branches]}


@dataclass(frozen=True)
class ConversationHistory:
    """Everything that happened to one conversation in a run.

    Attributes:
        questions: What was asked, by id, where it was not about rubrics.
        originals: What placeholders stand for, where that was asked for.
    """

    run: str
    trace: ConversationTrace
    questions: Mapping[str, Question] = field(default_factory=dict)
    originals: Mapping[str, str] = field(default_factory=dict)
    complete = True

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that `--json` prints."""
        trace = self.trace
        return {
            "run": self.run,
            "conversation": trace.conversation.model_dump(mode="json"),
            "side": trace.side,
            "steps": [vars(step) for step in trace.steps],
            "extraction": None if trace.extraction is None else trace.extraction.model_dump(mode="json"),
            "answers": {id_: answer.model_dump(mode="json") for id_, answer in trace.answers.items()},
            "score": None if trace.score is None else vars(trace.score),
        } | ({"originals": dict(self.originals)} if self.originals else {})


@dataclass(frozen=True)
class Origin:
    """The origin of a rubric.

    Attributes:
        roles: Names of the agents that made the set.
        conversations: The quoted conversations that the store still has, by id.
        learned_in: The run that made the set.
    """

    rubric: ChosenRubric | DroppedRubric
    roles: tuple[str, ...]
    reasons: tuple[Reason, ...]
    conversations: Mapping[str, Conversation]
    learned_in: str
    complete = True

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that `--json` prints."""
        return {
            "rubric": self.rubric.model_dump(mode="json"),
            "reasons": [reason.model_dump(mode="json") for reason in self.reasons],
            "conversations": {id_: c.model_dump(mode="json") for id_, c in self.conversations.items()},
        }


def list_runs(run: RunOptions, progress: Progress) -> RunList:  # noqa: ARG001 - as others
    """List all runs of a store."""
    with Store.open(run.store, read_only=True) as store:
        return RunList(tuple(RunRow.of(one) for one in runs(store)))


def trace_run(run: RunOptions, name: str, progress: Progress) -> RunTree:  # noqa: ARG001 - as others
    """Return what a run did; `name` is an id, its beginning, or `last`."""
    with Store.open(run.store, read_only=True) as store:
        found = find_run(store, name)
        return RunTree(found, tuple(run_tree(store, found.id)))


@dataclass(frozen=True)
class NodeState:
    """The state of a run after one of its nodes."""

    run: str
    node: str
    state: dict[str, Any]
    complete = True

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that are printed."""
        return self.state


def trace_state(run: RunOptions, name: str, node: str, progress: Progress) -> NodeState:  # noqa: ARG001 - as others
    """Return the state of a run after a node, as its last checkpoint there has it.

    Raises:
        WrongUse: The run has none.
    """
    from pollex.graphs.run import state_after  # LangGraph comes with it

    with Store.open(run.store, read_only=True) as store:
        found = find_run(store, name)
        return NodeState(found.id, node, complete(state_after(store, found, node)))


def trace_conversation(
    run: RunOptions,
    name: str,
    conversation_id: str,
    progress: Progress,  # noqa: ARG001 - as others
    *,
    reveal: bool = False,
) -> ConversationHistory:
    """Return everything that happened to one conversation in a run.

    Args:
        reveal: Whether what its placeholders stand for is wanted, too.
    """
    with Store.open(run.store, read_only=True) as store:
        found = find_run(store, name)
        trace = conversation_trace(store, found.id, writable(conversation_id))
        originals = originals_of(store, writable(conversation_id)) if reveal else {}
        return ConversationHistory(found.id, trace, questions_of(store, found), originals)


def explain_rubric(run: RunOptions, path: Path, name: str, progress: Progress) -> Origin:  # noqa: ARG001 - as others
    """Return a rubric's reasons, quotes and conversations; `name` is a prefix of its id."""
    rubrics = RubricSet.load(path, arrays=False)
    rubric = rubric_named(rubrics, name, path)
    reasons, kept = origin(run, rubrics, rubric)
    return Origin(rubric, tuple(dict.fromkeys(rubrics.roles.values())), tuple(reasons), kept, rubrics.run)


def branch_json(branch: Branch) -> dict[str, Any]:
    """Return a branch as JSON values."""
    return {
        "name": branch.name,
        "kind": branch.kind,
        "count": branch.count,
        "ms": branch.ms,
        "longest_ms": branch.longest,
        "errors": branch.errors,
        "told": branch.told,
        "branches": [branch_json(inner) for inner in branch.branches],
    }


def questions_of(store: Store, run: Run) -> dict[str, Question]:
    """Return the questions of a run by id, if it did not ask about rubrics."""
    if run.command not in ("judge", "grade", "ask"):
        return {}
    from pollex.services import ask as asking
    from pollex.services import grade_runs as grading
    from pollex.store import votes as judging  # a tenth of a second, for these runs alone

    kinds = {"judge": judging.asked_in, "grade": grading.asked_in, "ask": asking.asked_in}
    return kinds[run.command](store, run.id)


def rubric_named(rubrics: RubricSet, name: str, path: Path) -> ChosenRubric | DroppedRubric:
    """Return the rubric whose id begins with `name`, in the set or among those dropped.

    Raises:
        BadRubrics: There is none, or several.
    """
    every: list[ChosenRubric | DroppedRubric] = [*rubrics.all_rubrics, *rubrics.dropped]
    found = [rubric for rubric in every if rubric.id.startswith(name)]
    if len(found) != 1:
        raise BadRubrics(
            f"{len(found) or 'no'} rubrics have an id that begins with {name!r}",
            where=str(path),
            remedy=f"the set has {', '.join(rubric.id for rubric in rubrics.rubrics)}",
        )
    return found[0]


def origin(
    run: RunOptions, rubrics: RubricSet, rubric: ChosenRubric | DroppedRubric
) -> tuple[Sequence[Reason], Mapping[str, Conversation]]:
    """Return a rubric's reasons, and as many of their conversations as the store still has.

    The set has no reasons of a rubric that was dropped: they are the store's, too, or gone with it.
    """
    own = [] if isinstance(rubric, DroppedRubric) else [r for r in rubrics.reasons if r.id in rubric.reason_ids]
    try:
        with Store.open(run.store, read_only=True) as store:
            if isinstance(rubric, DroppedRubric):
                found = provenance(store, rubrics.run, rubric.id)
                return found.reasons, found.conversations
            ids = sorted({reason.conversation_id for reason in own})
            return own, {c.id: c for c in conversations_of(store, rubrics.run, ids=ids)}
    except PollexError:
        return own, {}
