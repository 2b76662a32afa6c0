"""A starter set learned elsewhere, combined with one's own rubrics for small logs.

The probability of a thumb up is a logistic function of both NetSATs, each as z over the whole log, with weights drawn
towards .7 each, so that ten labels are no reason to trust one of the two alone; and the starter's weight shrinks as far
as one's own labels speak against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import Field

from pollex.measures.arrays import Bools, Floats
from pollex.measures.intervals import Figure
from pollex.rubrics.answers import NEUTRAL, Answer, Unanswered
from pollex.rubrics.netsat import value_of
from pollex.rubrics.records import ChosenRubric, JudgeRecord, Record

PREFIX = "starter-"
"""Before the ids of a starter's rubrics: a set of one's own may have found the same."""

PRIOR_WEIGHT, PRECISION = 0.7, 10.0
FREE = 1e-6
"""Precision of the intercept's prior: none to speak of."""

STEPS = 50


class Stack(Record):
    """The model that turns two NetSATs into a probability.

    Attributes:
        own: Mean and standard deviation of the set's own NetSAT over the whole log.
        starter: The same of the starter's.
        weights: Of both z-scores.
        intercept: On log-odds.
    """

    own: tuple[float, float]
    starter: tuple[float, float]
    weights: tuple[float, float]
    intercept: float

    def probability(self, own: Floats, starter: Floats) -> Floats:
        """Compute P(thumb up) from NetSATs `[conversation]`."""
        odds = z_of(own, self.own) * self.weights[0] + z_of(starter, self.starter) * self.weights[1]
        return _share(self.intercept + odds)


class StarterRecord(Record):
    """A set that was learned elsewhere, kept inside the one that it helps.

    Attributes:
        source: Name of its file.
        rubrics: Its rubrics, their ids with `PREFIX`.
        never: What "Never came up" counts as, by rubric id.
        auc: Of the set alone (`own`), of the starter alone (`starter`), and of both (`both`).
        measured_on: Which conversations these figures are of.
        helps: Whether both have a larger area than the set alone.
    """

    source: str
    rubrics: tuple[ChosenRubric, ...]
    judge: JudgeRecord
    theta: float
    never: dict[str, float] = Field(default_factory=dict)
    stack: Stack
    auc: dict[str, Figure]
    measured_on: str
    helps: bool

    def probability(self, netsat: float, answers: Sequence[Answer | Unanswered]) -> float | None:
        """Compute P(thumb up) by both sets; None where a rubric of the starter is unanswered."""
        if (other := self.netsat(answers)) is None:
            return None
        return float(self.stack.probability(np.array([netsat]), np.array([other]))[0])

    def netsat(self, answers: Sequence[Answer | Unanswered]) -> float | None:
        """Add up the starter's rubrics; None where one is unanswered."""
        by_id = {answer.question_id: answer for answer in answers}
        total = 0.0
        for rubric in self.rubrics:
            answer = by_id.get(rubric.id)
            if not isinstance(answer, Answer):
                return None
            value = value_of(answer, self.judge.options.value, self.never.get(rubric.id, NEUTRAL))
            total += value if rubric.polarity == "sat" else -value
        return total


def z_of(values: Floats, scale: tuple[float, float]) -> Floats:
    """Standardize by a mean and a standard deviation."""
    return (values - scale[0]) / (scale[1] or 1.0)


def scale_of(values: Floats) -> tuple[float, float]:
    """Return mean and standard deviation."""
    return float(values.mean()), float(values.std())


def weigh(own: Floats, starter: Floats, positive: Bools) -> tuple[tuple[float, float], float]:
    """Fit weights and intercept, averaged over two models: the starter says something, and it says nothing.

    Both are logistic with weights drawn towards .7 with precision 10, and equally likely beforehand. The labels weigh
    them by Laplace's approximation of their evidence. A starter that points the wrong way is never turned round.

    Source: MacKay 2003, "Information Theory, Inference, and Learning Algorithms", chapters 27 and 28.

    Args:
        own: z of the set's NetSAT, of conversations that it was chosen without `[conversation]`.
        starter: z of the starter's `[conversation]`.
    """
    alone, evidence_alone = _fitted(own[:, None], positive)
    both, evidence_both = _fitted(np.column_stack([own, starter]), positive)
    says = float(_share(np.array(evidence_both - evidence_alone)))
    first, second = says * both[0] + (1 - says) * alone[0], max(0.0, says * both[1])
    return (float(first), float(second)), _intercept(first * own + second * starter, positive)


def _fitted(z: Floats, positive: Bools) -> tuple[Floats, float]:
    """Fit a logistic model by Newton's method; return weights with the intercept last, and the log evidence.

    Args:
        z: Both sets' z, or one's `[conversation, set]`.
    """
    x = np.column_stack([z, np.ones(len(z))])
    toward, precision = (
        np.append(np.full(z.shape[1], value), end) for value, end in ((PRIOR_WEIGHT, 0), (PRECISION, FREE))
    )
    beta = toward.copy()
    for _ in range(STEPS):
        p = _share(x @ beta)
        curvature = (x * (p * (1 - p))[:, None]).T @ x + np.diag(precision)
        step = np.linalg.solve(curvature, x.T @ (positive - p) - precision * (beta - toward))
        beta += np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-10:
            break
    likelihood = -np.logaddexp(0, np.where(positive, -1, 1) * (x @ beta)).sum()
    prior = 0.5 * (np.log(precision) - precision * (beta - toward) ** 2).sum()
    return beta, float(likelihood + prior - 0.5 * np.linalg.slogdet(curvature)[1])


def _intercept(odds: Floats, positive: Bools) -> float:
    """Fit the intercept beside fixed log-odds: the mean probability is the share of thumbs up."""
    level = 0.0
    for _ in range(STEPS):
        p = _share(level + odds)
        level += float(np.clip((positive - p).sum() / max((p * (1 - p)).sum(), FREE), -2, 2))
    return level


def prefixed(rubrics: Sequence[ChosenRubric]) -> tuple[ChosenRubric, ...]:
    """Return the rubrics with ids of a starter."""
    return tuple(rubric.model_copy(update={"id": PREFIX + rubric.id}) for rubric in rubrics)


def learned_with_prefix(judge: JudgeRecord) -> JudgeRecord:
    """Return the judge's record with what it learned under ids of a starter."""
    return judge.model_copy(update={"learned": {PREFIX + id_: value for id_, value in judge.learned.items()}})


def with_prefix(counts: Mapping[str, float]) -> dict[str, float]:
    """Return values by rubric under ids of a starter."""
    return {PREFIX + id_: value for id_, value in counts.items()}


def _share(odds: Floats) -> Floats:
    """Convert log-odds to probabilities, without importing SciPy."""
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -500, 500))), dtype=np.float64)
