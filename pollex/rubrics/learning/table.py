"""The answers of a run to its rubrics, by conversation, and as arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.measures.arrays import Bools, Floats
from pollex.rubrics.answers import LIKERT, NEUTRAL, NEVER_CAME_UP, Answer, Option, Unanswered
from pollex.rubrics.netsat import value_of
from pollex.rubrics.rubric import Rubric
from pollex.selection.losses import EVAL_RANGE


@dataclass(frozen=True)
class GivenAnswers:
    """The answers that were given, with those that are missing.

    Attributes:
        rule: How an answer becomes a value; see `netsat.value_of`.
        options: Number of options of each rubric.
        values: By conversation and rubric, the term of NetSAT without its sign; None if unanswered.
        distributions: By conversation and rubric, the probability of each option; missing if unanswered.
        never: Pairs of conversation and rubric whose occasion never came up.
        never_counts: Value of "never came up" by rubric; neutral for those not named.
        failures: First reason why a conversation has no answer to any rubric.
    """

    rule: str
    options: int = len(LIKERT)
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
            if isinstance(answer, Unanswered):
                values[answer.question_id] = None
                distributions.pop(answer.question_id, None)
                self.failures.setdefault(conversation_id, answer)
            else:
                values[answer.question_id] = value_of(answer, self.rule)  # type: ignore[arg-type]
                if answer.never_came_up:
                    self.never.add((conversation_id, answer.question_id))
                distributions[answer.question_id] = answer.probabilities

    def left(self, conversation_ids: Sequence[str], rubrics: Sequence[Rubric]) -> list[str]:
        """Return the conversations that were not asked about all of the rubrics."""
        asked = {rubric.id for rubric in rubrics}
        return [id_ for id_ in conversation_ids if not self.values.get(id_, {}).keys() >= asked]

    def matrix(self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]) -> tuple[Floats, Bools]:
        """Return values [conversation, rubric], signed so that larger is better, and an answered mask.

        Unanswered values hold the rubric's mean.
        """
        rows = [[self._value(c.id, r.id) for r in rubrics] for c in conversations]
        answered = np.array([[v is not None for v in row] for row in rows], dtype=bool).reshape(len(rows), len(rubrics))
        values = np.array([[v or 0.0 for v in row] for row in rows], dtype=np.float64).reshape(len(rows), len(rubrics))
        counts = np.maximum(answered.sum(axis=0), 1)
        values = np.where(answered, values, (values * answered).sum(axis=0) / counts)
        return values * np.array([r.sign for r in rubrics], float), answered

    def _value(self, conversation_id: str, rubric_id: str) -> float | None:
        if (conversation_id, rubric_id) in self.never:
            return self.never_counts.get(rubric_id, NEUTRAL)
        return self.values.get(conversation_id, {}).get(rubric_id)

    def answered(self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]) -> list[Conversation]:
        """List conversations with an answer to every rubric, as a score needs."""
        _, answered = self.matrix(conversations, rubrics)
        return [c for c, row in zip(conversations, answered, strict=True) if row.all()]

    def judged(self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]) -> list[Conversation]:
        """List conversations with an answer to any of the rubrics."""
        _, answered = self.matrix(conversations, rubrics)
        return [c for c, row in zip(conversations, answered, strict=True) if row.any()]

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

    def probabilities(self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]) -> Floats:
        """Probability of each option `[conversation, rubric, option]`; NaN where unanswered."""
        missing = (np.nan,) * self.options
        rows = [[self.distributions.get(c.id, {}).get(r.id, missing) for r in rubrics] for c in conversations]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(rubrics), self.options)

    def summary(self, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]) -> dict[str, dict[str, float]]:
        """Tell the answers to each rubric: mean term of NetSAT, spread, share answered."""
        values, answered = self.matrix(conversations, rubrics)
        columns = zip(rubrics, values.T, answered.T, strict=True)
        return {
            rubric.id: {"mean": float(v.mean()), "spread": float(v.std()), "answered": float(a.mean())}
            for rubric, v, a in columns
        }
