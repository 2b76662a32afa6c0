"""Drift between two samples without labels: scores, rubrics, words, and the log-loss to be expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.drift import (
    Stability,
    counts_of,
    expected_log_loss,
    share_unlike,
    stability,
    stability_of_counts,
)
from pollex.measures.intervals import Figure
from pollex.rubrics.answers import LIKERT
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.arms import Arm, units_of

MOST = 2000
"""Conversations a side that the classifier of texts is trained on."""
FOLDS = 5
WORD = r"(?u)\b\w+\b"
BETWEEN_OPTIONS = np.array([(low.value + high.value) / 2 for low, high in pairwise(LIKERT)])
FEWEST = 20
"""Conversations a side below which texts are not told apart."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Differences of a sample from an earlier one, by scores and texts alone.

    Attributes:
        stability: Population stability index of `p`, `netsat` and each rubric, by name: of a rubric over its answers,
            since means of answers crowd at the middle, where a change that nobody would see moves them all.
        unlike: Smallest share of the second sample without a counterpart in the first, by a classifier of their words.
        expected_log_loss: Of each sample, if its probabilities are calibrated.
        held_out_log_loss: Log-loss measured on held-out labels when the set was learned; None if unknown.
    """

    stability: dict[str, Stability]
    unlike: Figure
    expected_log_loss: tuple[float, float]
    held_out_log_loss: Figure | None


def watch(a: Arm, b: Arm, rubric_set: RubricSet, rng: np.random.Generator) -> Watch:
    """Compare two samples without labels."""
    found = {
        "p": stability(a.probability, b.probability, rng),
        "netsat": stability(a.netsat, b.netsat, rng),
    }
    for place, rubric in enumerate(rubric_set.rubrics):
        then, now = (_answers(arm.values[:, place]) for arm in (a, b))
        if then.any() and now.any():
            found[rubric.id] = stability_of_counts(then, now, rng)
    measured = rubric_set.calibrator and rubric_set.calibrator.held_out
    return Watch(
        stability=found,
        unlike=unlike(a.conversations, b.conversations, rng),
        expected_log_loss=(expected_log_loss(a.probability), expected_log_loss(b.probability)),
        held_out_log_loss=measured.log_loss if measured else None,
    )


def _answers(values: Floats) -> Floats:
    """Count mean answers `[conversation]` by the option that is nearest; NaN is no answer."""
    return counts_of(values[~np.isnan(values)], BETWEEN_OPTIONS)


def unlike(before: Sequence[Conversation], after: Sequence[Conversation], rng: np.random.Generator) -> Figure:
    """Estimate the smallest share of a sample that an earlier one has no counterpart for.

    A user's conversations, and those of one id, are predicted by a classifier that has seen none of them.
    """
    if min(len(before), len(after)) < FEWEST:
        return Figure(None, n=len(after), undefined=f"fewer than {FEWEST} conversations on a side")
    drawn = [_drawn(sample, rng) for sample in (before, after)]
    second = np.repeat([False, True], [len(sample) for sample in drawn])
    conversations = [*drawn[0], *drawn[1]]
    unit = units_of(conversations)
    if len(np.unique(unit)) < 2 * FOLDS:
        return Figure(None, n=len(after), undefined=f"fewer than {2 * FOLDS} users")
    texts = [" ".join(turn.content for turn in conversation.turns) for conversation in conversations]
    return share_unlike(_taken_for_second(texts, second, rng.permutation(unit.max() + 1)[unit] % FOLDS), second)


def _drawn(sample: Sequence[Conversation], rng: np.random.Generator) -> list[Conversation]:
    if len(sample) <= MOST:
        return list(sample)
    return [sample[row] for row in np.sort(rng.choice(len(sample), MOST, replace=False)).tolist()]


def _taken_for_second(texts: Sequence[str], second: Bools, fold: Ints) -> Bools:
    """Predict from which sample each text is, by classifiers that were fitted without its fold."""
    # scikit-learn takes a second to import
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    words = TfidfVectorizer(sublinear_tf=True, max_features=20_000, dtype=np.float64, token_pattern=WORD)
    x = words.fit_transform(texts)  # weights of words, which no label enters
    found = np.zeros(len(second), dtype=bool)
    for number in range(FOLDS):
        mine = fold == number
        if mine.any() and len(np.unique(second[~mine])) == 2:
            model = LogisticRegression(class_weight="balanced", C=10.0).fit(x[~mine], second[~mine])
            found[mine] = model.predict(x[mine])
    return found
