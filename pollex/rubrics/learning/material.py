"""What rubrics are chosen and fitted by: the two sides of a log, the pool, and the answers to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.measures.arrays import Bools, Floats
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.learning.table import GivenAnswers
from pollex.rubrics.records import LLM, JudgeRecord
from pollex.rubrics.rubric import Polarity, Rubric
from pollex.rubrics.starter import StarterRecord


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
        return np.asarray(self.table.matrix(conversations, self.record.rubrics)[0].sum(axis=1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Made:
    """A pool that some conversations made.

    Attributes:
        leads: Those that tell of a deed or an outcome, on the side that their words are of `[rubric]`.
        answers: Probabilities `[conversation, rubric, option]`, of all others, too, each on a scale without it.
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
        graded_training: Those with a grade that is no thumb; models of grades alone are fitted to them.
        graded_held_out: Those on the side that is held out.
        family_of: Name of the family of a rubric, by its source.
        make: Makes the pool anew of some of these conversations; None where that isn't free.
        once: What was worked out of all this, and need not be again in this process.
        learned_from: Text hashes of conversations that the rubrics were learned from in an earlier run. Models of the
            thumbs can't be compared on these, since the choice of rubrics saw them.
        model: Name of the model of the probability to take without comparison.
        pool: By side, the rubrics that were written; empty where rubrics were given.
        refused: Why batches and texts came to no rubric, and how often.
        kept: The pool without duplicates, or the rubrics that were given.
        merged: By duplicate, the rubric that it was merged into.
        starter: A set that was learned elsewhere, with its answers: for the model of the probability alone.
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
    make: Callable[[Sequence[Conversation], Bools], Made] | None = None
    once: dict[str, Any] = field(default_factory=dict)
    learned_from: frozenset[str] = frozenset()
    model: str | None = None
    pool: Mapping[Polarity, Sequence[Rubric]] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    kept: tuple[Rubric, ...] = ()
    merged: Mapping[str, str] = field(default_factory=dict)
    starter: Starter | None = None
    chosen: tuple[Rubric, ...] = ()

    @property
    def in_order(self) -> tuple[Rubric, ...]:
        """What the model of the probability reads: the chosen rubrics by id, then a starter's.

        First weights of the network depend on the order, and a refit knows no other.
        """
        own = sorted(self.chosen, key=lambda rubric: rubric.id)
        return (*own, *(self.starter.record.rubrics if self.starter else ()))

    def answers(self, conversations: Sequence[Conversation]) -> Floats:
        """Probability of each option `[conversation, rubric, option]` of the rubrics in order; NaN where unanswered."""
        own = self.table.probabilities(conversations, self.in_order[: len(self.chosen)])
        return own if self.starter is None else np.concatenate([own, self.of_starter(conversations)], axis=1)

    def of_starter(self, conversations: Sequence[Conversation]) -> Floats:
        """Return the starter's share of `answers`."""
        assert self.starter is not None, "only asked where there is one"
        return self.starter.table.probabilities(conversations, self.starter.record.rubrics)

    @property
    def by_model(self) -> bool:
        """Whether a model judges."""
        return self.judge_record.kind == LLM

    @property
    def by_evidence(self) -> bool:
        """Whether labels say which rubrics stay: those of built-in roles, whose answers cost nothing."""
        return bool(self.pool) and self.make is not None and self.settings.method == "rubicon"

    @property
    def crossfitted(self) -> bool:
        """Whether all labels teach, and figures are of choices made anew without each fold."""
        return self.by_evidence and not self.held_out
