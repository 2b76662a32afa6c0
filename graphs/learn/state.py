"""The state that `learn` passes between nodes, and what its nodes work with."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict  # LangGraph Studio can't show the standard one before Python 3.12

from pollex.agents.roles import Extraction, Roles
from pollex.calibration.candidates import candidate
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import WrongUse
from pollex.graphs.context import Context, Resources
from pollex.measures.arrays import Bools
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import LIKERT, NEUTRAL, NEVER_CAME_UP, Answer, Option, Question, Unanswered
from pollex.rubrics.netsat import value_of
from pollex.rubrics.records import JudgeRecord
from pollex.rubrics.rubric import Polarity, Reason, Rubric, content_id
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.thumb_model import ThumbModel
from pollex.selection.losses import EVAL_RANGE
from pollex.selection.policies import DEFAULT, policy_named
from pollex.selection.pool import Budget
from pollex.store.resume import step

Stage = Literal["pool", "held_out"]

HIGHEST_SEED = 2**32 - 1
"""What scikit-learn takes."""


class LearnState(TypedDict, total=False):
    """What a person wants to see of a run; bulk is in the store, under the run's id.

    Attributes:
        parent: The run that this one was forked from, with the node, `learn-3:deduplicate`.
        split: Conversations of either side, and a digest of their ids.
        batch: Ids of the conversations that are being worked on.
        last: What the last batch came to.
        progress: By stage, how many conversations are done, of how many, and outcomes.
        reasons: By side, how many there are, and the first ones with a quote.
        pool: By side, the rubrics that were written; see `pool.row_of`.
        refused: Why batches and texts came to no rubric, and how often.
        kept: The pool without duplicates, as a person may have edited it.
        merged: By duplicate, the rubric that it was merged into.
        pooled: By rubric of the pool, its mean answer, their spread, and the share answered.
        chosen: Rubrics of the set with step, loss and standing.
        dropped: By rubric that was not chosen, why.
        alphas: The table that α was chosen by.
        probability: The model of the probability, why, and what it was compared with.
        figures: Of the held-out conversations, each with its interval.
        digest: Of the rubric set, which is in the store.
    """

    run: str
    parent: str
    settings: dict[str, Any]
    split: dict[str, Any]
    batch: list[str]
    last: dict[str, Any]
    progress: Annotated[dict[str, dict[str, Any]], operator.or_]
    reasons: dict[str, dict[str, Any]]
    pool: Annotated[dict[str, list[dict[str, Any]]], operator.or_]
    refused: Annotated[dict[str, int], operator.or_]
    kept: list[dict[str, Any]]
    merged: dict[str, str]
    reviewed: bool
    pooled: dict[str, dict[str, float]]
    chosen: list[dict[str, Any]]
    dropped: dict[str, dict[str, Any]]
    alpha: float
    alphas: list[dict[str, Any]]
    probability: dict[str, Any]
    figures: dict[str, Any]
    digest: str
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class LearnChoice(Context):
    """What the user chose for `learn`.

    Attributes:
        domain: A domain profile or its file; empty for the neutral one.
        budget: Rubrics of each kind; 0 for the usual number.
        review: Whether the run waits for people at the pool.
    """

    logs: str | list[str] = ""
    domain: str = ""
    test_fraction: float = 0.5
    budget: int = 0
    seed: int = 0
    review: bool = False


Method = Literal["rubicon", "spur"]

TEN_A_LIST = (10, 10, 10, 10)
"""The budget where none is given: ten SAT and ten DSAT rubrics in the headline list, and as many in the second."""


def budget_of(most: int | None) -> Budget:
    """Return the budget of a set with as many rubrics of each kind; None: that of either list."""
    return TEN_A_LIST if most is None else (most, most)


@dataclass(frozen=True)
class LearnSettings:
    """Settings of a learning run.

    Attributes:
        test_fraction: Share of the labeled conversations that is held out; 0 holds nothing out.
        budget: Maximum number of SAT and DSAT rubrics in the set; with two numbers more, in either of its two lists.
        mini_batch: Reasons a summarizer sees at once.
        method: `rubicon` writes a growing pool and chooses from it; `spur` revises one set of limited size in place.
        policy: How rubrics are chosen; a name of `selection.policies`.
        alpha: Weight of sharpness; None chooses it by cross-validation.
        probability: What gives the probability of a thumb up: `network`, which another model replaces that is better by
            more than a standard error; `best`; or the name of a model.
        also: Fields of other questions that people rated, separated by commas: where the labels are grades, the network
            learns these first, with the grades.
        resamples: Bootstrap resamples for stability; 0 leaves it out.
        minimum: Conversations of each class that are needed to learn at all.
    """

    test_fraction: float = 0.5
    budget: Budget = TEN_A_LIST
    mini_batch: int = 20
    method: Method = "rubicon"
    policy: str = DEFAULT
    alpha: float | None = None
    probability: str = "network"
    also: str = ""
    seed: int = 0
    resamples: int = 200
    minimum: int = 10

    @property
    def others_rated(self) -> list[str]:
        """Names of the fields in `also`."""
        return [name.strip() for name in self.also.split(",") if name.strip()]

    def __post_init__(self) -> None:
        """Refuse settings that can't be carried out, before any work is done.

        Raises:
            WrongUse: Says what, and what to give instead.
        """
        policy_named(self.policy)
        candidate(self.probability)
        if self.method not in get_args(Method):
            raise WrongUse(f"no method is called {self.method!r}", remedy=f"use one of {', '.join(get_args(Method))}")
        if not 0 <= self.test_fraction < 1:
            raise WrongUse(f"a test fraction of {self.test_fraction}", remedy="give one from 0 to less than 1")
        if min(self.budget) < 0 or max(self.budget) < 1:
            raise WrongUse(f"a budget of {max(self.budget)}", remedy="give 1 or more rubrics a kind")
        if self.mini_batch < 1:
            raise WrongUse(f"a mini-batch of {self.mini_batch}", remedy="give 1 or more reasons")
        if self.alpha is not None and not (math.isfinite(self.alpha) and self.alpha >= 0):
            raise WrongUse(f"an alpha of {self.alpha}", remedy="give 0 or more, or leave it to cross-validation")
        if not 0 <= self.seed <= HIGHEST_SEED:
            raise WrongUse(f"a seed of {self.seed}", remedy=f"give one from 0 to {HIGHEST_SEED}")


@dataclass
class RunState:
    """The state of a learning run; filled from the store on resume.

    Attributes:
        options: Number of options of each rubric.
        answers: By conversation and rubric, the term of NetSAT without its sign; None if unanswered.
        distributions: By conversation and rubric, the probability of each option; missing if unanswered.
        thumb_model: Model of the probability; set by `calibrate`.
        crossfitted: By training conversation, P(thumb up) by a model and rubrics that did not see it.
        never: Pairs of conversation and rubric whose occasion never came up.
        never_counts: Value of "never came up" by rubric; neutral for those not named.
        failures: First reason why a conversation has no answer to any rubric.
        learned_from: Text hashes of conversations that the rubrics were learned from in an earlier run. Models of the
            thumbs can't be compared on these, since the choice of rubrics saw them.
        model: Name of the model to take without comparison.
    """

    options: int = len(LIKERT)
    extractions: dict[str, Extraction | Unanswered] = field(default_factory=dict)
    pool: dict[Polarity, tuple[Rubric, ...]] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    kept: tuple[Rubric, ...] = ()
    merged: dict[str, str] = field(default_factory=dict)
    chosen: tuple[Rubric, ...] = ()
    answers: dict[str, dict[str, float | None]] = field(default_factory=dict)
    distributions: dict[str, dict[str, tuple[float, ...]]] = field(default_factory=dict)
    never: set[tuple[str, str]] = field(default_factory=set)
    never_counts: dict[str, float] = field(default_factory=dict)
    failures: dict[str, Unanswered] = field(default_factory=dict)
    thumb_model: ThumbModel | None = None
    crossfitted: dict[str, float] = field(default_factory=dict)
    rubric_set: RubricSet | None = None
    learned_from: frozenset[str] = frozenset()
    model: str | None = None

    @property
    def unextracted(self) -> dict[str, Unanswered]:
        """Reasons for missing extractions, by conversation."""
        return {id_: found for id_, found in self.extractions.items() if isinstance(found, Unanswered)}

    def take(self, conversation_id: str, answers: Sequence[Answer | Unanswered], rule: str) -> None:
        """Add a judge's answers about a conversation."""
        values = self.answers.setdefault(conversation_id, {})
        distributions = self.distributions.setdefault(conversation_id, {})
        for answer in answers:
            if isinstance(answer, Unanswered):
                values[answer.question_id] = None
                distributions.pop(answer.question_id, None)
                self.failures.setdefault(conversation_id, answer)
            else:
                values[answer.question_id] = value_of(answer, rule)  # type: ignore[arg-type]
                if answer.never_came_up:
                    self.never.add((conversation_id, answer.question_id))
                distributions[answer.question_id] = answer.probabilities

    def held(self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]) -> Bools:
        """Tell where rubrics hold `[conversation, rubric]`; one whose occasion never came up doesn't."""
        values, _ = self.matrix(conversations, rubrics)
        came_up = [[(c.id, r.id) not in self.never for r in rubrics] for c in conversations]
        return np.asarray((np.abs(values) > EVAL_RANGE / 2) & np.array(came_up, dtype=bool).reshape(values.shape))

    def picked(self, conversation_id: str, rubric_id: str, options: Sequence[Option]) -> str:
        """Describe the most probable answer."""
        if (conversation_id, rubric_id) in self.never:
            return NEVER_CAME_UP
        found = self.distributions.get(conversation_id, {}).get(rubric_id)
        return options[int(np.argmax(found))].text if found else "unanswered"

    def reasons(self, order: Sequence[Conversation], polarity: Polarity) -> list[Reason]:
        """List all reasons of one polarity, in the order of the conversations."""
        found = (self.extractions.get(conversation.id) for conversation in order)
        return [
            reason
            for extraction in found
            if isinstance(extraction, Extraction)
            for reason in extraction.reasons
            if reason.polarity == polarity
        ]

    def matrix(
        self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Return values [conversation, rubric], signed so that larger is better, and an answered mask.

        Unanswered values hold the rubric's mean.
        """
        rows = [[self._value(c.id, r.id) for r in rubrics] for c in conversations]
        answered = np.array([[v is not None for v in row] for row in rows], dtype=bool).reshape(len(rows), len(rubrics))
        values = np.array([[v or 0.0 for v in row] for row in rows], dtype=np.float64).reshape(len(rows), len(rubrics))
        counts = np.maximum(answered.sum(axis=0), 1)
        values = np.where(answered, values, (values * answered).sum(axis=0) / counts)
        return values * np.array([1.0 if r.polarity == "sat" else -1.0 for r in rubrics]), answered

    def _value(self, conversation_id: str, rubric_id: str) -> float | None:
        if (conversation_id, rubric_id) in self.never:
            return self.never_counts.get(rubric_id, NEUTRAL)
        return self.answers.get(conversation_id, {}).get(rubric_id)

    def probabilities(
        self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
    ) -> npt.NDArray[np.float64]:
        """Probability of each option `[conversation, rubric, option]`; NaN where unanswered."""
        missing = (np.nan,) * self.options
        rows = [[self.distributions.get(c.id, {}).get(r.id, missing) for r in rubrics] for c in conversations]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(rubrics), self.options)


@dataclass(frozen=True, kw_only=True)
class LearnContext(Resources):
    """The runtime context of the nodes of `learn`.

    Attributes:
        training: Labeled and scorable conversations, ordered by id.
        held_out: Labeled and scorable conversations, ordered by id; empty when nothing is held out.
        graded_training: Those with a grade that is no thumb; models of grades alone are fitted to them.
        graded_held_out: Those on the side that is held out.
        writing: What the nodes that write rubrics begin with.
        review: Whether the run waits for people at the pool.
        fitted: Roles that have learned in this process.
        result: Filled by the last node, for who runs the graph.
    """

    logs: Logs
    training: tuple[Conversation, ...]
    held_out: tuple[Conversation, ...]
    graded_training: tuple[Conversation, ...] = ()
    graded_held_out: tuple[Conversation, ...] = ()
    roles: Roles
    judge_record: JudgeRecord
    profile: DomainProfile
    settings: LearnSettings
    work: RunState
    prompts: dict[str, str] = field(default_factory=dict)
    by_id: dict[str, Conversation] = field(default_factory=dict)
    writing: str = "summarize"
    review: bool = False
    fitted: set[str] = field(default_factory=set)
    result: list[Any] = field(default_factory=list)

    def bulk(self, name: str) -> Any:
        """Return what a node kept under its name."""
        return step(self.store, self.run, name)

    @property
    def told_settings(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self.settings).items()}

    @property
    def split(self) -> dict[str, Any]:
        """What the state tells of the split."""
        ids = [[c.id for c in side] for side in (self.training, self.held_out)]
        return {"training": len(ids[0]), "held_out": len(ids[1]), "digest": content_id(*map("\x1e".join, ids))}

    def pooled(self) -> dict[str, dict[str, float]]:
        """Tell the answers to each rubric of the pool: mean term of NetSAT, spread, share answered."""
        values, answered = self.work.matrix(self.training, self.work.kept)
        columns = zip(self.work.kept, values.T, answered.T, strict=True)
        return {
            rubric.id: {"mean": float(v.mean()), "spread": float(v.std()), "answered": float(a.mean())}
            for rubric, v, a in columns
        }

    def rubrics_asked(self, stage: Stage) -> tuple[Rubric, ...]:
        """Return the rubrics of a stage: the pool on training conversations, else the chosen ones."""
        return self.work.kept if stage == "pool" else self.work.chosen

    def asked_of(self, stage: Stage) -> tuple[Conversation, ...]:
        """Return the conversations that a stage judges."""
        if stage == "pool":
            return (*self.training, *self.graded_training)
        return (*self.held_out, *self.graded_held_out)

    def questions(self, stage: Stage) -> list[Question]:
        """Return the stage's rubrics as questions."""
        return [Question.about(rubric, self.judge_record.scale) for rubric in self.rubrics_asked(stage)]
