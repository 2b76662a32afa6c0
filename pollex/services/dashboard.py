"""What a calibrator predicts of texts: densities by question and subset, with bands, and their lower tails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pollex.calibration.estimator import JudgedEstimator
from pollex.conversations.conversation import Conversation
from pollex.formats.columns import naturally
from pollex.measures.arrays import Floats, Ints
from pollex.measures.intervals import FEWEST, LEVEL, Figure
from pollex.reports.calibration import PredictedScores, TailText

RESAMPLES = 200
PLACES = 61
"""At which a density is drawn."""
TAIL, LONGEST_TAIL = 0.1, 10
"""Share of the texts that is the lower tail, and the most of them that are listed."""
MOST_GROUPS, MOST_JUDGES = 8, 60


def predicted_of(
    models: Mapping[str, JudgedEstimator],
    X: Floats,
    texts: Sequence[str],
    groups: Mapping[str, Sequence[str]],
    logs: Mapping[str, Conversation],
    rng: np.random.Generator,
) -> Iterator[PredictedScores]:
    """Yield what is predicted of all texts and of each subset, for each question whose answers have an order.

    Args:
        models: By question, each tuned to its own.
        groups: By column, the group of each text.
        logs: Conversations by the id of the text.
    """
    named = np.array(texts, dtype=object)
    for question, model in models.items():
        scale = model.questionnaire_.scale(question)
        if not scale.ordinal or not len(named):
            continue
        judges = model.judges_
        if len(judges) > MOST_JUDGES:
            judges = tuple(rng.choice(np.array(judges, dtype=object), MOST_JUDGES, replace=False))
        each = model.predict_each(X, judges, question)
        mesh = np.linspace(min(scale.values), max(scale.values), PLACES)
        for column, group, rows in _subsets(groups, len(named)):
            yield _predicted(question, column, group, mesh, each[rows], named[rows], logs, rng)


def _subsets(groups: Mapping[str, Sequence[str]], texts: int) -> Iterator[tuple[str, str, Ints]]:
    yield "", "", np.arange(texts)
    for column, labels in groups.items():
        names = sorted({label for label in labels if label}, key=naturally)
        if 1 < len(names) <= MOST_GROUPS:
            yield from ((column, name, np.flatnonzero(np.array(labels, dtype=object) == name)) for name in names)


def _predicted(
    question: str,
    column: str,
    group: str,
    mesh: Floats,
    each: Floats,
    texts: np.ndarray[tuple[int], np.dtype[np.object_]],
    logs: Mapping[str, Conversation],
    rng: np.random.Generator,
) -> PredictedScores:
    scores = each.mean(axis=1)
    kernel = _kernel(mesh, scores)
    count, judges = each.shape
    draws, means = [], []
    for _ in range(RESAMPLES if count >= FEWEST else 0):
        weights = rng.multinomial(count, np.full(count, 1 / count))
        again = each @ (rng.multinomial(judges, np.full(judges, 1 / judges)) / judges)
        draws.append(kernel @ _counts(mesh, again, weights))
        means.append(float(again @ weights) / count)
    tails = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    low, high = np.quantile(draws, tails, axis=0).tolist() if draws else ([], [])
    least, most = np.quantile(means, tails).tolist() if means else (None, None)
    order = np.argsort(scores, kind="stable")[: min(LONGEST_TAIL, max(1, round(TAIL * count)))]
    return PredictedScores(
        question=question,
        column=column,
        group=group,
        mean=Figure(float(scores.mean()), least, most, n=count, units=count),
        mesh=mesh.tolist(),
        density=(kernel @ _counts(mesh, scores, np.ones(count))).tolist(),
        low=low,
        high=high,
        tail=tuple(
            TailText(texts[place], float(scores[place]), getattr(logs.get(texts[place]), "turns", ()))
            for place in order.tolist()
        ),
    )


def _counts(mesh: Floats, scores: Floats, weights: Floats | Ints) -> Floats:
    """Return the share of the texts nearest to each place of the mesh `[place]`."""
    step = mesh[1] - mesh[0]
    nearest = np.clip(np.rint((scores - mesh[0]) / step), 0, len(mesh) - 1).astype(np.int64)
    return np.asarray(np.bincount(nearest, weights, len(mesh)) / weights.sum())


def _kernel(mesh: Floats, scores: Floats) -> Floats:
    """Return a normal kernel between places `[place, place]`, mirrored at the ends: no answer lies beyond them.

    Its width is Silverman's rule of thumb (1986, "Density Estimation", eq. 3.31).
    """
    middle = np.subtract(*np.quantile(scores, [0.75, 0.25])) / 1.34
    spread = min(float(scores.std()), float(middle)) or float(scores.std())
    width = max(0.9 * spread * len(scores) ** -0.2, 1.5 * (mesh[1] - mesh[0]))
    first, last = mesh[0], mesh[-1]
    images = (mesh, 2 * first - mesh, 2 * last - mesh)
    away = [(mesh[:, None] - image[None, :]) / width for image in images]
    return np.asarray(sum(np.exp(-0.5 * one**2) for one in away) / (width * np.sqrt(2 * np.pi)))
