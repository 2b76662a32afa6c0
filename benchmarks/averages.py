"""Figures averaged over several predictions of the same judgments."""

from collections.abc import Sequence

import numpy as np

from pollex.measures.distributions import Predictions, make_prediction_measures
from pollex.measures.intervals import (
    BOOTSTRAP_RESAMPLES,
    Figure,
    Measure,
    WeightedStatistic,
    estimate_figures_on_same_resamples,
)


def averaged(
    runs: Sequence[Predictions],
    measures: Sequence[str],
    rng: np.random.Generator | None = None,
    resamples: int = BOOTSTRAP_RESAMPLES,
) -> dict[str, Figure]:
    """Average each measure over several predictions of the same judgments: splits, seeds.

    The interval is that of the mean, with every run on the same resamples of texts. It says how far
    other texts would move it; what splits and seeds do is another question.

    Args:
        runs: One at least.
        measures: As in `estimate_difference`.
    """
    each = [make_prediction_measures(run) for run in runs]
    figures = {
        name: Measure(
            _mean([of[name].statistic for of in each]),
            next(filter(None, (of[name].undefined for of in each)), ""),
        )
        for name in measures
    }
    return estimate_figures_on_same_resamples(figures, runs[0].text, rng, resamples)


def _mean(statistics: Sequence[WeightedStatistic]) -> WeightedStatistic:
    return lambda weights: np.mean([statistic(weights) for statistic in statistics], axis=0)
