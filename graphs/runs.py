"""Runs: a graph with its context, begun or resumed in the store, and what came of it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from langchain_core.runnables import RunnableConfig

from pollex.agents.answers import Unanswered
from pollex.agents.embedded.judge import EmbeddedJudge
from pollex.agents.embedded.rewording import reworded
from pollex.agents.roles import Judge
from pollex.agents.rubrics import Rubric
from pollex.conversations.logs import Logs
from pollex.conversations.model import Conversation, Label
from pollex.conversations.splits import split
from pollex.conversations.sufficiency import check_learnable
from pollex.errors import Interrupted, PollexError
from pollex.graphs import refit as refit_graph
from pollex.graphs import score as score_graph
from pollex.graphs.learn import graph as learn_graph
from pollex.graphs.learn.state import LearnContext, LearnSettings, LearnState, Work
from pollex.graphs.rubric_set import JudgeRecord, RubricSet, Score
from pollex.graphs.runtime import WAVE, Progress, Roles, Shelf, Silent, waves_needed
from pollex.graphs.score import ScoreContext, ScoreState, score_row
from pollex.prompts.profile import DomainProfile
from pollex.store.resume import answers_of, extractions_of, resumable, runs
from pollex.store.rows import conversation_rows
from pollex.store.runs import FINISHED, Run
from pollex.store.spans import Tracer
from pollex.store.store import Store

PORTION = 500


@dataclass(frozen=True)
class LabelledScore:
    """A labelled conversation's NetSAT in a learning run; None where it has none, and `outcome` says why."""

    conversation_id: str
    side: Literal["training", "held_out"]
    positive: bool
    netsat: float | None
    outcome: str = "scored"


@dataclass(frozen=True)
class Learned:
    """What a learning run came to.

    Attributes:
        means: By rubric of the set, how much it is agreed with on average among positive and among negative
            conversations, 0 … 10; None where none of them has an answer.
        unextracted: By conversation, why no reasons could be had from it.
    """

    run: str
    rubric_set: RubricSet
    scores: tuple[LabelledScore, ...]
    means: dict[str, tuple[float | None, float | None]]
    unextracted: Mapping[str, Unanswered]


@dataclass(frozen=True)
class Scored:
    """What a scoring run came to; the scores themselves are read with `scores_of`."""

    run: str
    counts: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where and how a run works; the same for all graphs.

    Attributes:
        arguments: As given by the user, for `pollex runs`.
        resume: Go on with the last unfinished run of the same fingerprint.
        secrets: Keys that must not be written anywhere.
        wave: Conversations in flight at once.
        at_once: Of these, how many are asked about at once: a few more than the endpoint has slots keep it busy.
        traced: Told the run's tracer when the run begins.
    """

    store: Store
    progress: Progress
    arguments: Mapping[str, Any]
    resume: bool = False
    secrets: Collection[str] = ()
    wave: int = WAVE
    at_once: int = WAVE
    traced: Callable[[Tracer], None] = lambda _tracer: None

    def tracer(self, run: str) -> Tracer:
        """The run's tracer, told to whom it concerns."""
        tracer = Tracer(self.store, run, self.secrets)
        self.traced(tracer)
        return tracer

    @classmethod
    def of(cls, store: Store, **changes: Any) -> Setting:
        """A setting without progress and arguments, for use from Python."""
        return replace(cls(store=store, progress=Silent(), arguments={}), **changes)


async def learn(
    logs: Logs,
    *,
    roles: Roles,
    judge_record: JudgeRecord,
    profile: DomainProfile,
    settings: LearnSettings,
    setting: Setting,
    prompts: Mapping[str, str] | None = None,
) -> Learned:
    """Learns a rubric set from labelled conversations.

    Raises:
        BadLabels: One class is missing or too small, or can't be split.
        ResumeRefused: The run to resume was started with something else.
    """
    fingerprint = fingerprint_of(logs, settings=settings, profile=profile, roles=roles.fingerprints)
    return await _learn(
        "learn", logs, Work(), fingerprint, roles, judge_record, profile, settings, setting, prompts or {}
    )


async def refit(
    logs: Logs,
    rubric_set: RubricSet,
    *,
    roles: Roles,
    settings: LearnSettings,
    setting: Setting,
) -> Learned:
    """Judges the rubrics of a set again and fits θ, window and probability again; α stays."""
    rubrics = asked(rubric_set, roles.judge)
    budget = tuple(sum(r.polarity == kind for r in rubrics) for kind in ("sat", "dsat"))
    fixed = LearnSettings(
        test_fraction=settings.test_fraction,
        budget=(budget[0], budget[1]),
        alpha=1.0 if rubric_set.alpha is None else rubric_set.alpha,
        seed=settings.seed,
        resamples=0,
        minimum=settings.minimum,
    )
    fingerprint = fingerprint_of(logs, settings=fixed, profile=rubric_set.domain, roles=roles.fingerprints)
    fingerprint["rubrics"] = digest([rubric.model_dump(mode="json") for rubric in rubrics])
    known = set(rubric_set.data.training_hashes)
    learned = await _learn(
        "refit",
        logs,
        Work(kept=rubrics),
        fingerprint,
        roles,
        rubric_set.judge,
        rubric_set.domain,
        fixed,
        setting,
        rubric_set.prompts,
    )
    held_out = {score.conversation_id for score in learned.scores if score.side == "held_out"}
    fitted, notes = learned.rubric_set, []
    if seen := sum(c.id in held_out and c.text_hash[:16] in known for c in logs):
        notes.append(
            f"The rubrics were learnt from {seen} of the held-out conversations: their figures are too good. Refit "
            "with the test fraction, seed and groups that the set was learnt with."
        )
    hashes = tuple(sorted(known.union(fitted.data.training_hashes)))
    kept = {
        "reasons": rubric_set.reasons,
        "dropped": rubric_set.dropped,
        "roles": rubric_set.roles | {"judge": roles.judge.name},
        "data": fitted.data.model_copy(update={"training_hashes": hashes}),
        "notes": (*fitted.notes, *notes),
    }
    return replace(learned, rubric_set=fitted.model_copy(update=kept))


def asked(rubric_set: RubricSet, judge: Judge) -> tuple[Rubric, ...]:
    """The set's rubrics as the judge is to understand them: without an LLM, a new wording may need other evidence."""
    rubrics = [Rubric.model_validate(r.model_dump(include=set(Rubric.model_fields))) for r in rubric_set.rubrics]
    if not isinstance(judge, EmbeddedJudge):
        return tuple(rubrics)
    written = [rubric.written for rubric in rubric_set.rubrics]
    return tuple(reworded(r, before, judge.embedder) for r, before in zip(rubrics, written, strict=True))


async def _learn(
    command: Literal["learn", "refit"],
    logs: Logs,
    work: Work,
    fingerprint: dict[str, str],
    roles: Roles,
    judge_record: JudgeRecord,
    profile: DomainProfile,
    settings: LearnSettings,
    setting: Setting,
    prompts: Mapping[str, str],
) -> Learned:
    learnable = logs.learnable
    check_learnable(learnable, settings.minimum)
    sides = split(learnable, settings.test_fraction, settings.seed)
    async with running(command, fingerprint, setting, sorted(set(roles.names.values()))) as run:
        keep_conversations(setting.store, run.id, logs, sides.train, sides.test)
        work.extractions = extractions_of(setting.store, run.id)
        for id_, answers in answers_of(setting.store, run.id).items():
            work.take(id_, list(answers.values()), judge_record.value)
        context = LearnContext(
            store=setting.store,
            run=run.id,
            tracer=setting.tracer(run.id),
            secrets=setting.secrets,
            progress=setting.progress,
            wave=setting.wave,
            gate=asyncio.Semaphore(setting.at_once),
            logs=logs,
            training=sides.train,
            held_out=sides.test,
            roles=roles,
            judge_record=judge_record,
            profile=profile,
            settings=settings,
            work=work,
            prompts=dict(prompts),
            by_id={c.id: c for c in (*sides.train, *sides.test)},
        )
        graph = learn_graph.graph if command == "learn" else refit_graph.graph
        with context.tracer.span(command, kind="graph"):
            await graph.ainvoke(LearnState(), context=context, config=config(len(learnable), setting.wave))
        assert work.rubric_set is not None, "the graph ends with `assess`"
        scores = tuple(labelled_scores(work, sides.train, sides.test))
        keep_scores(setting.store, run.id, work.rubric_set, scores)
        failures = work.failures | work.unextracted
        finished(setting.store, run.id, roles.names, failures, {"rubrics": work.rubric_set.rubrics_digest})
    return Learned(run.id, work.rubric_set, scores, mean_answers(work, learnable), work.unextracted)


async def score(
    conversations: Sequence[Conversation],
    rubric_set: RubricSet,
    *,
    judge: Judge,
    data_fingerprint: str,
    setting: Setting,
    command: Literal["score", "evaluate"] = "score",
) -> Scored:
    """Scores conversations with a rubric set; `scores_of` reads the scores back, in the conversations' order."""
    fingerprint = {
        "data": data_fingerprint[:12],
        "rubrics": digest(rubric_set.model_dump(mode="json")),
        "judge": judge.fingerprint,
    }
    async with running(command, fingerprint, setting, [judge.name]) as run:
        store = setting.store
        known = kept_ids(store, run.id)
        for start in range(0, len(conversations), PORTION):
            new = [c for c in conversations[start : start + PORTION] if c.id not in known]
            await store.write(conversation_rows(run.id, new))
        shelf, done = Shelf(conversations), scored_ids(store, run.id)
        context = ScoreContext(
            store=store,
            run=run.id,
            tracer=setting.tracer(run.id),
            secrets=setting.secrets,
            progress=setting.progress,
            wave=setting.wave,
            gate=asyncio.Semaphore(setting.at_once),
            shelf=shelf,
            pending=[id_ for id_ in shelf if id_ not in done],
            judge=judge,
            questions=rubric_set.questions,
            netsat=rubric_set.scorer_of(),
        )
        setting.progress.start("score", len(shelf), len(done))
        with context.tracer.span(command, kind="graph"):
            await score_graph.graph.ainvoke(ScoreState(), context=context, config=config(len(shelf), setting.wave))
        counts = outcome_counts(store, run.id, [rubric.id for rubric in rubric_set.rubrics])
        store.finish(
            run.id, "partial" if counts.keys() - {"scored"} else "done", roles=[judge.name], result={"outcomes": counts}
        )
    return Scored(run.id, counts)


def scores_of(store: Store, run: str, rubric_set: RubricSet, conversations: Sequence[Conversation]) -> Iterator[Score]:
    """The scores of a run, in the order of the conversations, read in portions."""
    netsat = rubric_set.scorer_of()
    for start in range(0, len(conversations), PORTION):
        ids = [c.id for c in conversations[start : start + PORTION]]
        answers = answers_of(store, run, ids=ids)
        for id_ in ids:
            yield netsat.score(id_, list(answers.get(id_, {}).values()))


def scored_ids(store: Store, run: str) -> set[str]:
    """Conversations whose score is stored."""
    return {row["conversation"] for row in store.rows("SELECT conversation FROM scores WHERE run = ?", [run])}


def outcome_counts(store: Store, run: str, order: Sequence[str]) -> dict[str, int]:
    """How many conversations came to which outcome; they sum to the number of conversations.

    Args:
        order: The rubrics' ids, as they stand in the set: where none is answered, the first one's outcome counts.
    """
    return {row["outcome"]: row["n"] for row in store.rows(_OUTCOMES, [run, list(order)])}


_OUTCOMES = """
    WITH latest AS (
        SELECT conversation, question, last(outcome ORDER BY rowid) AS outcome
        FROM answers WHERE run = $1 GROUP BY conversation, question
    ), ended AS (
        SELECT CASE
            WHEN count(*) = len($2) AND bool_and(outcome = '') THEN 'scored'
            WHEN count(*) = len($2) AND bool_and(outcome <> '') THEN arg_min(outcome, list_position($2, question))
            ELSE 'incomplete' END AS outcome
        FROM latest GROUP BY conversation
    )
    SELECT outcome, count(*) AS n FROM ended GROUP BY outcome ORDER BY outcome
"""
"""The same as `NetSat.score` says of each; the last answer to a question stands, as it does in `answers_of`."""


@asynccontextmanager
async def running(
    command: str, fingerprint: Mapping[str, str], setting: Setting, roles: Sequence[str]
) -> AsyncIterator[Run]:
    """A run that was begun or is resumed; its end is noted whatever happens, short of a kill."""
    store = setting.store
    if setting.resume:
        run = taken_up(store, command, fingerprint)
    else:
        run = store.begin(command, arguments=setting.arguments, fingerprint=fingerprint, versions=versions())
    store.finish(run.id, "unfinished", roles=roles)
    try:
        yield run
    except (KeyboardInterrupt, asyncio.CancelledError, Interrupted):
        store.finish(run.id, "interrupted", roles=roles)
        raise
    except PollexError as error:
        store.finish(run.id, "failed", roles=roles, result={"error": error.what})
        raise
    except Exception as error:
        store.finish(run.id, "failed", roles=roles, result={"error": type(error).__name__})
        raise


def taken_up(store: Store, command: str, fingerprint: Mapping[str, str]) -> Run:
    """The run that `--resume` goes on with.

    The last run is taken up though it ended, too: a kill may come between its end and the files that are made of it.
    Nothing of it is done again.
    """
    last = next((run for run in reversed(runs(store)) if run.command == command), None)
    if last and last.status in FINISHED and last.fingerprint == dict(fingerprint):
        return last
    return resumable(store, command, fingerprint)


def finished(
    store: Store, run: str, names: Mapping[str, str], failures: Mapping[str, Unanswered], result: dict[str, Any]
) -> None:
    """Notes the end of a learning run."""
    status: Literal["partial", "done"] = "partial" if failures else "done"
    store.finish(run, status, roles=sorted(set(names.values())), result=result | {"unanswered": len(failures)})


def keep_conversations(
    store: Store, run: str, logs: Logs, training: Sequence[Conversation], held_out: Sequence[Conversation]
) -> None:
    """All conversations of the log, with the side that they are on; a resumed run has some of them already."""
    known = kept_ids(store, run)
    used = {c.id for c in (*training, *held_out)}
    store.put(conversation_rows(run, [c for c in training if c.id not in known], side="train"))
    store.put(conversation_rows(run, [c for c in held_out if c.id not in known], side="test"))
    store.put(conversation_rows(run, [c for c in logs if c.id not in known | used]))


def kept_ids(store: Store, run: str) -> set[str]:
    """Conversations of a run that are stored."""
    return {row["id"] for row in store.rows("SELECT id FROM conversations WHERE run = ?", [run])}


def keep_scores(store: Store, run: str, rubric_set: RubricSet, scores: Sequence[LabelledScore]) -> None:
    """What each labelled conversation came to, for `pollex trace`."""
    netsat = rubric_set.scorer_of()
    store.put(
        score_row(
            run,
            Score(conversation_id=one.conversation_id, outcome=one.outcome)
            if one.netsat is None
            else netsat.read(one.conversation_id, one.netsat),
        )
        for one in scores
    )


def labelled_scores(
    work: Work, training: Sequence[Conversation], held_out: Sequence[Conversation]
) -> Iterator[LabelledScore]:
    """NetSAT of every labelled conversation, for plots."""
    sides: tuple[tuple[Literal["training", "held_out"], Sequence[Conversation]], ...] = (
        ("training", training),
        ("held_out", held_out),
    )
    for side, conversations in sides:
        values, answered = work.matrix(conversations, work.chosen)
        for c, row, complete in zip(conversations, values, np.all(answered, axis=1).tolist(), strict=True):
            failure = work.failures.get(c.id)
            outcome = "scored" if complete else failure.outcome if failure else "incomplete"
            yield LabelledScore(c.id, side, c.label is Label.POSITIVE, float(row.sum()) if complete else None, outcome)


def mean_answers(work: Work, conversations: Sequence[Conversation]) -> dict[str, tuple[float | None, float | None]]:
    """By rubric of the set, the mean answer among positive and among negative conversations."""

    def mean(rubric_id: str, label: Label) -> float | None:
        answers = (work.answers.get(c.id, {}).get(rubric_id) for c in conversations if c.label is label)
        values = [value for value in answers if value is not None]
        return sum(values) / len(values) if values else None

    return {r.id: (mean(r.id, Label.POSITIVE), mean(r.id, Label.NEGATIVE)) for r in work.chosen}


def fingerprint_of(
    logs: Logs, *, settings: LearnSettings, profile: DomainProfile, roles: Mapping[str, str]
) -> dict[str, str]:
    """All that a learning run's result depends on: the settings in words, since a refused resume shows what changed."""
    return {
        "data": logs.fingerprint[:12],
        **{name: json.dumps(value) for name, value in vars(settings).items()},
        "domain": digest(profile.model_dump(mode="json")),
        **{role: fingerprint[:12] for role, fingerprint in roles.items()},
    }


def digest(value: Any) -> str:
    """Twelve hex digits of JSON values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]


def versions() -> dict[str, str]:
    """Of pollex and of what its results depend on most."""
    return {name: version(name) for name in ("pollex", "langgraph", "numpy", "scikit-learn", "openvino", "duckdb")}


def config(items: int, wave: int) -> RunnableConfig:
    """LangGraph's settings: a recursion limit that fits, since its default of 10,007 would let a loop bug run on."""
    return {"recursion_limit": waves_needed(2 * items, wave)}
