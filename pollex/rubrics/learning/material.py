"""What rubrics are chosen and fitted by: the two sides of a log, the pool, and the answers to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Protocol

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.measures.arrays import Bools, Floats
from pollex.rubrics.answers import (
    LIKERT_OPTIONS,
    MIDDLE_OPTION_VALUE,
    NEVER_CAME_UP_OPTION,
    Answer,
    Option,
    Unanswered,
)
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.learning.words import LogPhrases
from pollex.rubrics.records import LLM_JUDGE_KIND, JudgeRecord, StarterRecord
from pollex.rubrics.rubric import Polarity, Rubric
from pollex.rubrics.score import compute_answer_value
from pollex.rubrics.tone import ToneForm, ToneRecord
from pollex.selection.multi_split import find_where_rubrics_hold
from pollex.selection.netsat import sum_rubric_values


@dataclass(frozen=True)
class GivenAnswers:
    """The answers that were given, with those that are missing.

    Attributes:
        rule: How an answer becomes a value; see `score.compute_answer_value`.
        options: Number of options of each rubric.
        values: By conversation and rubric, the term of NetSAT without its sign; None if unanswered.
        distributions: By conversation and rubric, the probability of each option; missing if
            unanswered.
        never: Pairs of conversation and rubric whose occasion never came up.
        never_counts: Value of "never came up" by rubric; neutral for those not named.
        failures: First reason why a conversation has no answer to any rubric.
    """

    rule: str
    options: int = len(LIKERT_OPTIONS)
    values: dict[str, dict[str, float | None]] = field(default_factory=dict)
    distributions: dict[str, dict[str, tuple[float, ...]]] = field(default_factory=dict)
    never: set[tuple[str, str]] = field(default_factory=set)
    never_counts: Mapping[str, float] = field(default_factory=dict)
    failures: dict[str, Unanswered] = field(default_factory=dict)

    def take(self, conversation_id: str, answers: Sequence[Answer | Unanswered]) -> None:
        """Add a judge's answers about a conversation."""
        values = self.values.setdefault(conversation_id, {})
        distributions = self.distributions.setdefault(conversation_id, {})
        for answer in answers:
            # the newest answer says whether its occasion came up
            self.never.discard((conversation_id, answer.question_id))
            if isinstance(answer, Unanswered):
                # the newest word counts: a failed question takes an earlier answer away
                values[answer.question_id] = None
                distributions.pop(answer.question_id, None)
                self.failures.setdefault(conversation_id, answer)
            else:
                values[answer.question_id] = compute_answer_value(answer, self.rule)  # type: ignore[arg-type]
                if answer.never_came_up:
                    self.never.add((conversation_id, answer.question_id))
                distributions[answer.question_id] = answer.probabilities

    def left(self, conversation_ids: Sequence[str], rubrics: Sequence[Rubric]) -> list[str]:
        """Return the conversations that were not asked about all of the rubrics."""
        ids = {rubric.id for rubric in rubrics}
        return [id_ for id_ in conversation_ids if not self.values.get(id_, {}).keys() >= ids]

    def matrix(
        self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
    ) -> tuple[Floats, Bools]:
        """Return values [conversation, rubric], signed so that larger is better, and an answered mask.

        Unanswered values hold the rubric's mean.
        """
        rows = []
        for c in conversations:
            rows.append([self._value(c.id, r.id) for r in rubrics])

        answered = np.array([[v is not None for v in row] for row in rows], dtype=bool).reshape(
            len(rows),
            len(rubrics),
        )
        # 0 only until the rubric's mean takes its place
        values = np.array([[v or 0.0 for v in row] for row in rows], dtype=np.float64).reshape(
            len(rows),
            len(rubrics),
        )
        # a rubric without any answer has the mean 0
        counts = np.maximum(answered.sum(axis=0), 1)
        values = np.where(
            answered,
            values,
            (values * answered).sum(axis=0) / counts,
        )
        return values * np.array([r.sign for r in rubrics], float), answered

    def _value(self, conversation_id: str, rubric_id: str) -> float | None:
        if (conversation_id, rubric_id) in self.never:
            return self.never_counts.get(rubric_id, MIDDLE_OPTION_VALUE)
        return self.values.get(conversation_id, {}).get(rubric_id)

    def answered(
        self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
    ) -> list[Conversation]:
        """List conversations with an answer to every rubric, as a score needs."""
        return list(
            compress(
                conversations,
                np.asarray(self.matrix(conversations, rubrics)[1].all(axis=1)),
            )
        )

    def judged(
        self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
    ) -> list[Conversation]:
        """List conversations with an answer to any of the rubrics."""
        return list(
            compress(
                conversations,
                np.asarray(self.matrix(conversations, rubrics)[1].any(axis=1)),
            )
        )

    def held(self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]) -> Bools:
        """Tell where rubrics hold `[conversation, rubric]`; one whose occasion never came up doesn't."""
        values, _ = self.matrix(conversations, rubrics)
        return find_where_rubrics_hold(values, self.came_up(conversations, rubrics))

    def came_up(self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]) -> Bools:
        """Tell where the occasions of rubrics came up `[conversation, rubric]`."""
        rows = []
        for c in conversations:
            rows.append([(c.id, r.id) not in self.never for r in rubrics])
        return np.array(rows, dtype=bool).reshape(len(conversations), len(rubrics))

    def picked(
        self,
        conversation_id: str,
        rubric_id: str,
        options: Sequence[Option],
    ) -> str:
        """Describe the most probable answer."""
        if (conversation_id, rubric_id) in self.never:
            return NEVER_CAME_UP_OPTION

        distribution = self.distributions.get(conversation_id, {}).get(rubric_id)
        if distribution:
            return options[int(np.argmax(distribution))].text
        return "unanswered"

    def probabilities(
        self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
    ) -> Floats:
        """Probability of each option `[conversation, rubric, option]`; NaN where unanswered."""
        missing = (np.nan,) * self.options
        rows = []
        for c in conversations:
            rows.append([self.distributions.get(c.id, {}).get(r.id, missing) for r in rubrics])

        return np.array(rows, dtype=np.float64).reshape(
            len(rows),
            len(rubrics),
            self.options,
        )

    def summary(
        self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
    ) -> dict[str, dict[str, float]]:
        """Tell the answers to each rubric: mean term of NetSAT, spread, share answered."""
        values, answered = self.matrix(conversations, rubrics)
        columns = zip(rubrics, values.T, answered.T, strict=True)
        rows: dict[str, dict[str, float]] = {}
        for rubric, v, a in columns:
            rows[rubric.id] = {
                "mean": float(v.mean()),
                "spread": float(v.std()),
                "answered": float(a.mean()),
            }

        return rows


class Stages(Protocol):
    """Told how far long computations are."""

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """Begin a stage."""

    def advance(self, stage: str, by: int = 1) -> None:
        """Count items of a stage as done."""


@dataclass(frozen=True)
class Starter:
    """A set that was learned elsewhere, and its answers to the conversations of a run."""

    record: StarterRecord
    table: GivenAnswers

    def netsats(self, conversations: Sequence[Conversation]) -> Floats:
        """Return its NetSAT `[conversation]`; an unanswered rubric counts as its mean."""
        return sum_rubric_values(self.table.matrix(conversations, self.record.rubrics)[0])


@dataclass(frozen=True, eq=False)
class MadePool:
    """A pool that some conversations made.

    Attributes:
        leads: Those that tell of a deed or an outcome, on the side that their words are of
            `[rubric]`.
        answers: Probabilities `[conversation, rubric, option]`, of all others, too, each on a scale
            without it.
    """

    rubrics: Sequence[Rubric]
    leads: Bools
    answers: Floats


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a set is made of.

    Attributes:
        training: Labeled and scorable conversations, ordered by id.
        held_out: Labeled and scorable conversations, ordered by id; empty when nothing is held out.
        graded_training: Those with a grade that is no thumb; models of grades alone are fitted to
            them.
        graded_held_out: Those on the side that is held out.
        family_of: Name of the family of a rubric, by its source.
        make: Makes the pool anew of some of these conversations; None where that isn't free.
        words: Lays out all phrases of some of these conversations; None where nobody mined.
        form: What tone is made of; None where nobody measures it.
        earlier_tone: That of the set whose rubrics these are; None where there is none.
        once: What was worked out of all this, and need not be again in this process.
        learned_from: Text hashes of conversations that the rubrics were learned from in an earlier
            run. Models of the thumbs can't be compared on these, since the choice of rubrics saw
            them.
        pool: By side, the rubrics that were written; empty where rubrics were given.
        refused: Why batches and texts came to no rubric, and how often.
        kept: The pool without duplicates, or the rubrics that were given.
        merged: By duplicate, the rubric that it was merged into.
        reworded: By rubric that was hard to judge, the one that says it in better words.
        mirrors: Pairs of a rubric and its reverse on the other side: of each the better one stays.
        starter: A set that was learned elsewhere, with its answers: for the model of the
            probability alone.
    """

    logs: Logs
    training: tuple[Conversation, ...]
    held_out: tuple[Conversation, ...]
    graded_training: tuple[Conversation, ...] = ()
    graded_held_out: tuple[Conversation, ...] = ()
    settings: LearnSettings
    judge_record: JudgeRecord
    table: GivenAnswers
    progress: Stages
    family_of: Callable[[str], str]
    make: Callable[[Sequence[Conversation], Bools], MadePool] | None = None
    words: Callable[[Sequence[Conversation]], LogPhrases] | None = None
    form: ToneForm | None = None
    earlier_tone: ToneRecord | None = None
    once: dict[str, Any] = field(default_factory=dict)
    learned_from: frozenset[str] = frozenset()
    pool: Mapping[Polarity, Sequence[Rubric]] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    kept: tuple[Rubric, ...] = ()
    merged: Mapping[str, str] = field(default_factory=dict)
    reworded: Mapping[str, str] = field(default_factory=dict)
    mirrors: Sequence[tuple[str, str]] = ()
    starter: Starter | None = None
    chosen: tuple[Rubric, ...] = ()

    @property
    def in_order(self) -> tuple[Rubric, ...]:
        """What the model of the probability reads: the chosen rubrics by id, then a starter's.

        First weights of the network depend on the order, and a refit knows no other.
        """
        chosen = sorted(self.chosen, key=lambda rubric: rubric.id)
        return (*chosen, *(self.starter.record.rubrics if self.starter else ()))

    def answers(self, conversations: Sequence[Conversation]) -> Floats:
        """Probability of each option `[conversation, rubric, option]` of the rubrics in order; NaN where unanswered."""
        probabilities = self.table.probabilities(
            conversations,
            self.in_order[: len(self.chosen)],
        )
        if self.starter is None:
            return probabilities
        return np.concatenate([probabilities, self.of_starter(conversations)], axis=1)

    def of_starter(self, conversations: Sequence[Conversation]) -> Floats:
        """Return the starter's share of `answers`."""
        assert self.starter is not None, "only asked where there is one"
        return self.starter.table.probabilities(conversations, self.starter.record.rubrics)

    def words_of(self, conversations: Sequence[Conversation]) -> LogPhrases | None:
        """Lay out the phrases of some conversations, in their order; None where nobody mined."""
        if self.words:
            return self.words(conversations)
        return None

    @property
    def by_model(self) -> bool:
        """Whether a model judges."""
        return self.judge_record.kind == LLM_JUDGE_KIND

    @property
    def by_evidence(self) -> bool:
        """Whether labels say which rubrics stay: those of built-in roles, whose answers cost nothing."""
        return bool(self.pool) and self.make is not None and self.settings.method == "rubicon"

    @property
    def by_both(self) -> bool:
        """Whether the pool is a model's, with or without built-in rubrics beside its own."""
        return bool(self.pool) and self.by_model and self.settings.method == "rubicon"

    @property
    def crossfitted(self) -> bool:
        """Whether all labels teach, and figures are of choices made anew without each fold."""
        return (self.by_evidence or self.by_both) and not self.held_out
