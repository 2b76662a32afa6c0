"""Look back at runs, their traces, and where rubrics came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pollex.conversations.conversation import Conversation
from pollex.errors import BadCalibrator, BadRubrics, PollexError
from pollex.rooms import list_hooks
from pollex.rubrics.answers import Question, Unanswered
from pollex.rubrics.headlines import is_proven_or_likely
from pollex.rubrics.records import Choice, ChosenRubric, DroppedRubric
from pollex.rubrics.rubric import TONE_SOURCE, Reason
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import describe_certainty, describe_verdict
from pollex.rubrics.worth import describe_evidence_with_difference
from pollex.runs.options import RunOptions
from pollex.runs.run import get_calls_sent, get_cost_of_run
from pollex.runs.workspace import run_coroutine_to_end
from pollex.services.hooks import RunQuestionReader
from pollex.services.named_sets import read_rubric_set
from pollex.services.results import Result
from pollex.services.state_told import describe_state
from pollex.store.resume import (
    find_run,
    iterate_conversations,
    list_stored_runs,
    read_originals_of_placeholders,
)
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.store.tables import load_json
from pollex.store.traces import (
    ConversationTrace,
    SpanBranch,
    build_span_tree,
    collect_conversation_trace,
    find_rubric_provenance,
)
from pollex.text import (
    JsonDict,
    JsonObject,
    TerminalLine,
    TerminalLines,
    TerminalTable,
    escape_controls,
    format_count,
    replace_surrogates,
)

MAX_LINE_CHARACTERS = 400
"""Characters shown of a line."""
MAX_RUBRIC_CHARACTERS_SHOWN = 4000
"""Characters shown of a rubric that somebody asks about."""


@dataclass(frozen=True)
class RunRow:
    """A run in the list of runs.

    Attributes:
        logs: Files that it read.
        rubrics: The rubric set that it wrote or used; empty where there is none.
        seconds: None while it is unfinished.
        auc: Of held-out conversations, or of those that it was evaluated on; None where it measured
            none.
        calls: Calls that were sent to a model; None where none worked.
        cost: Of these; None where it isn't known.
        estimated_cost: In its place, by the texts, where the endpoint didn't count all tokens.
    """

    run: Run
    logs: tuple[str, ...]
    rubrics: str
    seconds: float | None
    auc: float | None
    calls: int | None = None
    cost: float | None = None
    estimated_cost: float | None = None

    @classmethod
    def of(cls, run: Run, progress: JsonObject) -> RunRow:
        """Read the row from what the store keeps of a run and of its progress."""
        arguments = run.arguments
        result = run.result if isinstance(run.result, dict) else {}
        # the set that was used; of `learn`, which uses none, the one that it wrote
        rubrics = (
            arguments.get("rubrics")
            or (arguments.get("out") if run.command == "learn" else "")
            or ""
        )
        at = datetime.fromisoformat
        # an unfinished run has no end to count to
        seconds = None
        if run.finished is not None:
            seconds = (at(run.finished) - at(run.started)).total_seconds()

        used = progress.get("used") or {}
        cost = get_cost_of_run(progress) if used else None
        # of a run that was resumed, an estimate of what it used since then would say too little
        estimated_cost = None
        if cost is None and "cost" not in progress:
            estimated_cost = used.get("estimated_cost")

        return cls(
            run,
            logs=tuple(map(str, arguments.get("logs") or ())),
            rubrics=str(rubrics),
            seconds=seconds,
            auc=result.get("auc"),
            calls=get_calls_sent(progress),
            cost=cost,
            estimated_cost=estimated_cost,
        )

    def as_json(self) -> JsonDict:
        """Return the row as JSON values."""
        return self.run.model_dump(mode="json") | {
            "logs": list(self.logs),
            "rubrics": self.rubrics,
            "seconds": self.seconds,
            "auc": self.auc,
            "calls": self.calls,
            "cost": self.cost,
            "estimated_cost": self.estimated_cost,
        }

    @property
    def cells(self) -> tuple[str, ...]:
        """Return it as a row of a table."""
        run = self.run
        more = ""
        if len(self.logs) > 1:
            more = f" and {len(self.logs) - 1} more"

        cost = "" if self.cost is None else f"{self.cost:.4g}"
        if self.estimated_cost is not None:
            cost = f"≈ {self.estimated_cost:.4g}"

        return (
            run.id,
            run.started[5:16].replace("T", " "),
            "" if self.seconds is None else _format_duration(1000 * self.seconds),
            run.status,
            ", ".join(role.removesuffix(" (no LLM)") for role in run.roles),
            escape_controls(Path(self.logs[0]).name + more if self.logs else "", 60),
            escape_controls(Path(self.rubrics).name if self.rubrics else "", 60),
            "" if self.auc is None else f"{self.auc:.3f}",
            "" if self.calls is None else f"{self.calls:,}",
            cost,
        )


@dataclass(frozen=True)
class RunList(Result):
    """All runs of a store, the last one last."""

    json_fields = ("runs",)

    runs: tuple[RunRow, ...]

    def told(self) -> TerminalLines:
        """Yield a row for each run."""
        columns = (
            *("run", "started (UTC)", "took", "status", "roles", "log", "rubrics", "AUC"),
            *("calls", "cost"),
        )
        # On a narrow terminal roles and names of files give way.
        stay_whole = (0, 1, 2, 3, 7, 8, 9)
        yield TerminalTable(columns, [row.cells for row in self.runs], whole=stay_whole)


@dataclass(frozen=True)
class RunTrace(Result):
    """Nodes and calls of a run, summed by name at each place of the tree."""

    json_fields = ("run", "tree=branches")

    run: Run
    branches: tuple[SpanBranch, ...]

    def told(self) -> TerminalLines:
        """Yield the tree of a run."""
        roles = ", ".join(self.run.roles) or "unknown"
        head = f"{self.run.id}: {self.run.status}, roles: {roles}, started {self.run.started[:19]}"
        yield TerminalLine(head, limit=MAX_LINE_CHARACTERS)
        for branch in self.branches:
            yield from _render_branch(branch, "")


@dataclass(frozen=True)
class ConversationHistory(Result):
    """Everything that happened to one conversation in a run.

    Attributes:
        questions: What was asked, by id, where it was not about rubrics.
        originals: What placeholders stand for, where that was asked for.
    """

    run: str
    trace: ConversationTrace
    questions: Mapping[str, Question] = field(default_factory=dict)
    originals: Mapping[str, str] = field(default_factory=dict)

    def told(self) -> TerminalLines:
        """Yield everything that happened to the conversation."""
        trace = self.trace
        # what the split did with the conversation
        side = {"train": ", learnt from", "test": ", held out"}.get(trace.side, "")
        about = f"{self.run} · {trace.conversation.id} · label {trace.conversation.label}{side}"
        yield TerminalLine(about, "bold", MAX_LINE_CHARACTERS)
        for number, turn in enumerate(trace.conversation.turns):
            yield TerminalLine(
                f"  [{number}] {turn.role}: {turn.shown}", "dim", MAX_LINE_CHARACTERS
            )

        for step in trace.steps:
            took = f"{step.started[11:23]}  {step.name}  {_format_duration(step.ms)}"
            yield TerminalLine(f"{took}  {step.error or 'ok'}", limit=MAX_LINE_CHARACTERS)

        yield from _render_findings(trace, self.questions)
        for name, original in self.originals.items():
            yield TerminalLine(f"{name} stands for {original}", limit=MAX_LINE_CHARACTERS)

    def as_json(self) -> JsonDict:
        names = ("conversation", "side", "steps", "extraction", "answers", "score")
        record = self.of("run", *(f"{name}=trace.{name}" for name in names))
        return record | (self.of("originals") if self.originals else {})


MAX_REASONS_SHOWN = 5
"""Reasons of a rubric that a terminal shows."""


@dataclass(frozen=True)
class RubricOrigin(Result):
    """The origin of a rubric.

    Attributes:
        roles: Names of the agents that made the set.
        conversations: The quoted conversations that the store still has, by id.
        learned_in: The run that made the set.
        weight: What the rubric weighs in the probability, from its lowest answer to its highest, in
            log-odds; None where no model gives it.
        tone: What is told of the set's tone, where that is asked about; else empty.
    """

    json_fields = ("rubric", "weight", "reasons", "conversations")

    rubric: ChosenRubric | DroppedRubric
    roles: tuple[str, ...]
    reasons: tuple[Reason, ...]
    conversations: Mapping[str, Conversation]
    learned_in: str
    weight: float | None = None
    tone: str = ""

    def told(self) -> TerminalLines:
        """Yield the rubric's reasons, quotes and conversations."""
        # tone has no reasons: all that is known of it is told in a line
        if self.tone:
            yield TerminalLine(self.tone, limit=MAX_LINE_CHARACTERS)
            return

        rubric = self.rubric
        words = [rubric.text] if isinstance(rubric, DroppedRubric) else filter(None, rubric.entry)
        thumbs = {"dsat": "thumbs down", "sat": "thumbs up"}[rubric.polarity]
        # only what labels bear out is told as so
        borne_out = isinstance(rubric, ChosenRubric) and is_proven_or_likely(rubric)
        side = f"{'Goes' if borne_out else 'May go'} along with {thumbs}"
        yield TerminalLine(f"{side}: {' '.join(words)}", "bold", MAX_RUBRIC_CHARACTERS_SHOWN)
        yield TerminalLine(f"({rubric.id}, {', '.join(self.roles)})", limit=MAX_LINE_CHARACTERS)

        # a dropped rubric has only the reason why it is not in the set
        if isinstance(rubric, DroppedRubric):
            yield TerminalLine(f"not in the set: {rubric.reason}", limit=MAX_LINE_CHARACTERS)
        else:
            yield from _render_standing(rubric)
            if rubric.choice:
                yield _render_choice(rubric.choice)
            if self.weight is not None:
                yield TerminalLine(describe_weight(self.weight), limit=MAX_LINE_CHARACTERS)

        for reason in self.reasons[:MAX_REASONS_SHOWN]:
            yield ""
            begins = ""
            # the store may no longer have the conversation: then its id stands alone
            if (conversation := self.conversations.get(reason.conversation_id)) is not None:
                opening = escape_controls(conversation.opening, 100)
                begins = f" ({format_count(len(conversation.turns), 'turn')}, label {conversation.label}): {opening}"
            yield TerminalLine(reason.conversation_id + begins, limit=MAX_LINE_CHARACTERS)
            yield from _render_reason(reason)

        if (more := len(self.reasons) - MAX_REASONS_SHOWN) > 0:
            yield f"… and {format_count(more, 'conversation')} more: --json has all"

        # reasons are in another store, or there never were any
        if not self.reasons:
            elsewhere = isinstance(rubric, DroppedRubric) and rubric.support
            gone = f"its reasons are in the store of run {self.learned_in}: name it with --store"
            yield gone if elsewhere else "no reasons: a person wrote it"


def _render_standing(rubric: ChosenRubric) -> TerminalLines:
    standing = rubric.standing
    if isinstance(rubric, ChosenRubric) and rubric.circumstance:
        yield f"It {rubric.circumstance}"

    yield (
        f"{rubric.stands}: p = {standing.p:.2g}, adjusted for all rubrics that were looked at; "
        f"{standing.n} conversations"
        if standing
        else "its standing is unknown"
    )
    if rubric.worth:
        yield describe_evidence_with_difference(rubric.worth, standing)
    if rubric.family and rubric.family.members:
        yield f"of the {rubric.family.n} conversations where it holds:"

    for member in rubric.family.members if rubric.family else ():
        yield TerminalLine(f"├─ {member.among}: {member.text}", limit=MAX_LINE_CHARACTERS)
        if member.quote:
            yield TerminalLine(
                f"│    “{member.quote.text}” ({member.quote.place}, {member.quote.conversation_id})",
                limit=MAX_LINE_CHARACTERS,
            )


def list_runs(run: RunOptions) -> RunList:
    """List all runs of a store."""
    with Store.open(run.store, read_only=True) as store:
        # the progress of all runs in one query; a run may have none
        progress = {}
        for row in store.rows("SELECT run, payload FROM progress"):
            progress[row["run"]] = load_json(row["payload"])
        return RunList(
            tuple(RunRow.of(run, progress.get(run.id, {})) for run in list_stored_runs(store))
        )


def trace_run(run: RunOptions, name: str) -> RunTrace:
    """Return what a run did; `name` is an id, its beginning, or `last`."""
    with Store.open(run.store, read_only=True) as store:
        named_run = find_run(store, name)
        return RunTrace(named_run, tuple(build_span_tree(store, named_run.id)))


@dataclass(frozen=True)
class NodeState(Result):
    """The state of a run after one of its nodes.

    Attributes:
        before: The state that the node began with.
    """

    run: str
    node: str
    state: dict[str, object]
    before: dict[str, object]

    def told(self) -> TerminalLines:
        """Yield what the node found, on a screen."""
        yield from describe_state(self.run, self.node, self.state, self.before)

    def as_json(self) -> JsonDict:
        return self.state


def trace_state(run: RunOptions, name: str, state: str) -> NodeState:
    """Return the state of a run after a node, as its last checkpoint there has it.

    Raises:
        WrongUse: The run has none.
    """
    from pollex.graphs.run import get_states_before_and_after_node  # LangGraph comes with it

    with Store.open(run.store, read_only=True) as store:
        named_run = find_run(store, name)
        before, after = run_coroutine_to_end(
            get_states_before_and_after_node(store, named_run, state)
        )
        return NodeState(named_run.id, state, after, before)


def trace_conversation(
    run: RunOptions,
    name: str,
    conversation: str,
    *,
    reveal: bool = False,
) -> ConversationHistory:
    """Return everything that happened to one conversation in a run.

    Args:
        reveal: Whether what its placeholders stand for is wanted, too.
    """
    with Store.open(run.store, read_only=True) as store:
        named_run = find_run(store, name)
        # the store has ids only in characters that can be written
        trace = collect_conversation_trace(store, named_run.id, replace_surrogates(conversation))
        if reveal:
            originals = read_originals_of_placeholders(store, replace_surrogates(conversation))
        else:
            originals = {}

        return ConversationHistory(
            named_run.id,
            trace,
            read_run_questions(store, named_run),
            originals,
        )


def explain_rubric(run: RunOptions, path: Path, name: str) -> RubricOrigin:
    """Return a rubric's reasons, quotes and conversations; `name` is a prefix of its id."""
    # without the model's arrays all but the weight is told
    try:
        rubrics = read_rubric_set(path, run.store)
    except BadCalibrator:
        rubrics = read_rubric_set(path, run.store, arrays=False)

    rubric = find_rubric_named(rubrics, name, path)
    reasons, choice = find_rubric_origin(run, rubrics, rubric)
    tone = ""
    if rubrics.tone and rubric.id == TONE_SOURCE:
        tone = rubrics.tone.told

    return RubricOrigin(
        rubric,
        tuple(dict.fromkeys(rubrics.roles.values())),
        tuple(reasons),
        choice,
        rubrics.run,
        get_rubric_weight(rubrics, rubric.id),
        tone,
    )


def get_rubric_weight(rubrics: RubricSet, rubric_id: str) -> float | None:
    """Return what a rubric weighs in the model of the probability; None where there is none."""
    explainer = rubrics.explainer
    if explainer.thumb_model is None:
        return None
    return explainer.weights.get(rubric_id)


def describe_weight(weight: float) -> str:
    """Say what a rubric weighs in the probability of a thumb up."""
    return f"in the probability it weighs {weight:+.2f} log-odds, from its lowest answer to its highest"


def read_run_questions(store: Store, run: Run) -> Mapping[str, Question]:
    """Return the questions of a run by id, if it did not ask about rubrics."""
    kinds: tuple[RunQuestionReader, ...] = list_hooks(RunQuestionReader)
    for kind in kinds:
        if kind.command == run.command:
            return kind.questions(store, run.id)
    return {}


def find_rubric_named(rubrics: RubricSet, name: str, path: Path) -> ChosenRubric | DroppedRubric:
    """Return the rubric whose id begins with `name`, in the set or among those dropped.

    Raises:
        BadRubrics: There is none, or several.
    """
    # people may ask about dropped rubrics, too, and about tone where it has no weight
    every: list[ChosenRubric | DroppedRubric] = [*rubrics.all_rubrics, *rubrics.dropped]
    every += [rubrics.tone.rubric] if rubrics.tone and not rubrics.tone.weight else []
    matching = [rubric for rubric in every if rubric.id.startswith(name)]
    if len(matching) != 1:
        raise BadRubrics(
            f"{len(matching) or 'no'} rubrics have an id that begins with {name!r}",
            where=str(path),
            hint=f"the set has {', '.join(rubric.id for rubric in rubrics.rubrics)}",
        )

    return matching[0]


def find_rubric_origin(
    run: RunOptions,
    rubrics: RubricSet,
    rubric: ChosenRubric | DroppedRubric,
) -> tuple[Sequence[Reason], Mapping[str, Conversation]]:
    """Return a rubric's reasons, and as many of their conversations as the store still has.

    The set has no reasons of a rubric that was dropped: they are the store's, too, or gone with it.
    """
    # the set keeps the reasons of its own rubrics; those of dropped ones are in the store alone
    if isinstance(rubric, DroppedRubric):
        own_line = []
    else:
        own_line = [r for r in rubrics.reasons if r.id in rubric.reason_ids]

    # without a store the reasons stand without their conversations
    try:
        with Store.open(run.store, read_only=True) as store:
            if isinstance(rubric, DroppedRubric):
                origin_record = find_rubric_provenance(store, rubrics.run, rubric.id)
                return origin_record.reasons, origin_record.conversations
            ids = sorted({reason.conversation_id for reason in own_line})
            return own_line, {c.id: c for c in iterate_conversations(store, rubrics.run, ids=ids)}
    except PollexError:
        return own_line, {}


def _render_branch(branch: SpanBranch, indent: str) -> TerminalLines:
    many = branch.count > 1
    took = _format_duration(branch.ms)
    if many:
        took = f" × {branch.count}  {took} summed, longest {_format_duration(branch.longest_ms)}"
    else:
        took = f"  {took}"

    yield TerminalLine(f"{indent}{branch.name}{took}  ({branch.kind})", limit=MAX_LINE_CHARACTERS)
    inner = f"{indent}  "
    if branch.told:
        yield TerminalLine(f"{inner}{branch.told}", limit=MAX_LINE_CHARACTERS)

    # the same error is told once, with how often it came
    for error, number in branch.errors.items():
        yield TerminalLine(f"{inner}{number} × {error}", "red", MAX_LINE_CHARACTERS)

    for child in branch.branches:
        yield from _render_branch(child, inner)


def _format_duration(ms: float) -> str:
    return f"{ms / 1000:.2f} s" if ms >= 1000 else f"{ms:.1f} ms"


def _render_findings(trace: ConversationTrace, questions: Mapping[str, Question]) -> TerminalLines:
    # reasons, or why there are none
    extraction = trace.extraction
    if isinstance(extraction, Unanswered):
        yield TerminalLine(f"no reasons: {extraction.outcome}: {extraction.detail}")
    elif extraction is not None:
        yield TerminalLine(extraction.summary, limit=MAX_LINE_CHARACTERS)
        for reason in extraction.reasons:
            yield from _render_reason(reason)

    for id_, answer in trace.answers.items():
        # a question of a questionnaire, or a rubric, whose text the run has
        question = questions.get(id_)
        if question:
            text = question.text
        else:
            text = trace.asked.get(id_, id_)

        if isinstance(answer, Unanswered):
            yield TerminalLine(
                f"  {id_}  {text}  unanswered: {answer.outcome}: {answer.detail}",
                "red",
                MAX_LINE_CHARACTERS,
            )
        else:
            options = question.options if question else answer.scale
            # the chosen number is a place among the options only if each has a probability
            is_distribution = len(answer.probabilities) == len(options)
            never = answer.never_came_up
            if never:
                option = answer.word
            elif is_distribution:
                option = options[answer.chosen].text
            else:
                option = str(answer.chosen)

            # a judge whose name says the kind of its answers is named once
            if answer.judge.startswith(answer.source):
                by = answer.judge
            else:
                by = f"{answer.source}, {answer.judge}"

            earlier = f", asked in {answer.asked_in}" if answer.asked_in else ""
            yield TerminalLine(
                f"  {id_}  {text}  {option} ({by}{earlier}); {answer.justification}",
                limit=MAX_LINE_CHARACTERS,
            )

    # a score that is missing is told by the steps above
    if (score := trace.score) and score.netsat is not None:
        if score.probability is not None:
            # the more likely side, at equal costs: a trace knows of no others
            decision = "positive" if score.probability >= 0.5 else "negative"
            yield TerminalLine(
                # a trace doesn't know whether its set's probabilities are calibrated
                describe_verdict(decision, score.probability, calibrated=False),
                "bold",
                MAX_LINE_CHARACTERS,
            )
        label_text = f"label {score.label}, {describe_certainty(score.confident)}"
        yield TerminalLine(
            f"For statisticians: NetSAT {score.netsat:.2f}, {label_text}",
            "dim",
            MAX_LINE_CHARACTERS,
        )


def _render_reason(reason: Reason) -> TerminalLines:
    yield TerminalLine(f"  {reason.polarity.upper()} {reason.text}", limit=MAX_LINE_CHARACTERS)
    for quote in reason.quotes:
        yield TerminalLine(f"      {quote.place}: “{quote.text}”", "dim", MAX_LINE_CHARACTERS)


def _render_choice(choice: Choice) -> TerminalLine:
    if choice.stability is None:
        stability = ""
    else:
        stability = f"; chosen in {100 * choice.stability:.0f} % of halves"

    choice_text = f"chosen in step {choice.step}, when the loss of the set with it was {choice.loss:.4f}{stability}"
    return TerminalLine(choice_text, limit=MAX_LINE_CHARACTERS)
