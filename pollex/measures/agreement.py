"""How far judges agree with each other.

Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"; the value is computed by the package of that
name, the resamples here, all at once.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from pollex.calibration.judgments import NOBODY, Judgments
from pollex.calibration.questionnaire import Scale
from pollex.measures.arrays import Floats, Ints
from pollex.measures.intervals import RESAMPLES, Figure, Measured, Statistic, measured

Level = Literal["nominal", "ordinal", "interval"]


def alpha(
    given: Judgments,
    scale: Scale,
    level: Level | None = None,
    rng: np.random.Generator | None = None,
    resamples: int = RESAMPLES,
) -> Measured:
    """Krippendorff's alpha between judges: 1 is full agreement, 0 what chance gives.

    Only texts with two or more judges say something; `n` and `texts` count these. Full agreement has no interval: how
    seldom judges would disagree whom nobody has seen to, resamples can't tell. Of several answers by one judge to
    one text the first counts; judges who are not known are taken for different ones.

    Args:
        given: Judgments of one question.
        level: None: ordinal for an ordinal question, else nominal.
    """
    counts = _counts(given, len(scale.values))
    counts = counts[counts.sum(axis=1) > 1]
    n, level = int(counts.sum()), level or ("ordinal" if scale.ordinal else "nominal")
    if not n:
        return Measured(None, None, None, 0, 0, "no text has two judges")
    if (counts.sum(axis=0) > 0).sum() < 2:
        return Measured(None, None, None, n, len(counts), "all answers are alike")
    from krippendorff import alpha as value_of

    value = value_of(value_counts=counts, value_domain=np.array(scale.values), level_of_measurement=level)
    figure = Figure(_alpha_statistic(counts, np.array(scale.values), level))
    # A unit of resampling is a text, so each stands for all its judgments here.
    found = measured({"alpha": figure}, np.arange(len(counts)), rng, resamples)["alpha"]
    if (counts.max(axis=1) == counts.sum(axis=1)).all():  # so does every resample, which doesn't make it certain
        return Measured(1.0, None, None, n, len(counts))
    return Measured(float(value), found.low, found.high, n, len(counts))


def _counts(given: Judgments, options: int) -> Ints:
    """How many judges chose each option `[text, option]`."""
    if not len(given):
        return np.zeros((0, options), np.int64)
    # A number of its own for everybody who is not known.
    who = np.where(given.judge == NOBODY, len(given.judges) + np.arange(len(given)), given.judge)
    pairs = np.stack([given.row, who], axis=1)
    firsts = np.unique(pairs, axis=0, return_index=True)[1]
    row = np.unique(given.row, return_inverse=True)[1][firsts]
    cells = row * options + given.answer[firsts]
    return np.bincount(cells, minlength=(row.max() + 1) * options).reshape(-1, options)


def _alpha_statistic(counts: Ints, values: Floats, level: Level) -> Statistic:
    """Alpha as a function of weights `[resample, text]`."""
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
    """Squared distance of every two options `[resample, option, option]`, given how often each was chosen."""
    if level == "nominal":
        return np.broadcast_to(1 - np.eye(len(values)), (len(totals), len(values), len(values)))
    if level == "interval":
        return np.broadcast_to((values[:, None] - values) ** 2, (len(totals), len(values), len(values)))
    # The weight of all options from the one to the other, of the two ends one half.
    middles = totals.cumsum(axis=1) - totals / 2
    return np.asarray((middles[:, :, None] - middles[:, None, :]) ** 2)
