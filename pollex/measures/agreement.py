"""Agreement between judges.

Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"; the value is computed by the package of that
name, the resamples here, all at once.
"""

from typing import Literal

import numpy as np

from pollex.measures.arrays import Floats, Ints
from pollex.measures.correlations import kappa_statistic
from pollex.measures.intervals import RESAMPLES, Figure, Measure, Statistic, measured

Level = Literal["nominal", "ordinal", "interval"]


def alpha(
    text: Ints,
    judge: Ints,
    answer: Ints,
    values: tuple[float, ...],
    level: Level,
    rng: np.random.Generator | None = None,
    resamples: int = RESAMPLES,
) -> Figure:
    """Compute Krippendorff's alpha between judges: 1 is full agreement, 0 is chance.

    Only texts with two or more judges count, in `n` and `units`, too. Full agreement has no interval: resamples can't
    tell how seldom judges would disagree.

    Args:
        text: Which text each judgment is of `[judgment]`.
        judge: Who gave it, −1 for somebody unknown `[judgment]`; unknown judges are taken for different ones. Of
            several answers by one judge to one text the first counts.
        answer: Place of the option that was chosen `[judgment]`.
        values: What each option is worth.
    """
    counts = _counts(text, judge, answer, len(values))
    counts = counts[counts.sum(axis=1) > 1]
    n = int(counts.sum())
    if not n:
        return Figure(None, undefined="no text has two judges", units=0)
    if (counts.sum(axis=0) > 0).sum() < 2:
        return Figure(None, n=n, undefined="all answers are alike", units=len(counts))
    from krippendorff import alpha as value_of

    value = value_of(value_counts=counts, value_domain=np.array(values), level_of_measurement=level)
    measure = Measure(_alpha_statistic(counts, np.array(values), level))
    # A unit of resampling is a text, so each stands for all its judgments here.
    found = measured({"alpha": measure}, np.arange(len(counts)), rng, resamples)["alpha"]
    if (counts.max(axis=1) == counts.sum(axis=1)).all():  # so does every resample, which doesn't make it certain
        return Figure(1.0, n=n, units=len(counts))
    return Figure(float(value), found.low, found.high, n, units=len(counts))


def _counts(text: Ints, judge: Ints, answer: Ints, options: int) -> Ints:
    if not len(text):
        return np.zeros((0, options), np.int64)
    # A number of its own for everybody who is not known.
    who = np.where(judge < 0, judge.max() + 1 + np.arange(len(judge)), judge)
    pairs = np.stack([text, who], axis=1)
    firsts = np.unique(pairs, axis=0, return_index=True)[1]
    row = np.unique(text, return_inverse=True)[1][firsts]
    cells = row * options + answer[firsts]
    return np.bincount(cells, minlength=(row.max() + 1) * options).reshape(-1, options)


def _alpha_statistic(counts: Ints, values: Floats, level: Level) -> Statistic:
    options = counts.shape[1]
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(options)
    coincidences = (pairs / (counts.sum(axis=1) - 1)[:, None, None]).reshape(len(counts), -1)

    def statistic(weights: Floats) -> Floats:
        observed = (weights @ coincidences).reshape(-1, options, options)
        totals = observed.sum(axis=2)
        n = totals.sum(axis=1)
        chance = totals[:, :, None] * totals[:, None, :] - totals[:, :, None] * np.eye(options)
        distances = _distances(totals, values, level)
        seen = (observed * distances).sum(axis=(1, 2))
        by_chance = (chance * distances).sum(axis=(1, 2)) / (n - 1)
        disagreement: Floats = np.divide(seen, by_chance, out=np.full(len(n), np.nan), where=by_chance > 0)
        return 1 - disagreement

    return statistic


def _distances(totals: Floats, values: Floats, level: Level) -> Floats:
    """Compute squared distances of options `[resample, option, option]` from their frequencies."""
    if level == "nominal":
        return np.broadcast_to(1 - np.eye(len(values)), (len(totals), len(values), len(values)))
    if level == "interval":
        return np.broadcast_to((values[:, None] - values) ** 2, (len(totals), len(values), len(values)))
    # The weight of all options from the one to the other, of the two ends one half.
    middles = totals.cumsum(axis=1) - totals / 2
    return np.asarray((middles[:, :, None] - middles[:, None, :]) ** 2)


def weighted_kappa(one: Floats, other: Floats, unit: Ints, rng: np.random.Generator | None = None) -> Figure:
    """Compute Cohen's κ with quadratic weights between two sets of answers to the same questions.

    Args:
        one: Values of the answers `[answer]`.
        other: Those of the other set `[answer]`.
        unit: What each answer belongs to and is resampled with `[answer]`.

    Source: Cohen 1968, doi:10.1037/h0026256.
    """
    measure = Measure(kappa_statistic(one, other), empty="all answers are alike")
    return measured({"kappa": measure}, unit, rng)["kappa"]
