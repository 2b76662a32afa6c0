"""Correlations of weighted judgments as statistics that can be resampled, and agreement between judges.

Source of alpha: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"; the value is
computed by the package of that name, the resamples here, all at once.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np

from pollex.measures.arrays import Floats, Ints
from pollex.measures.intervals import (
    BOOTSTRAP_RESAMPLES,
    Figure,
    Measure,
    WeightedStatistic,
    divide_or_nan,
    estimate_figures_on_same_resamples,
)

MAX_CONTINGENCY_TABLE_CELLS_PER_BLOCK = 1 << 19
"""Cells of contingency tables held at once: 4 MB."""

MAX_VARIANCE_SHARE_OF_ROUNDING = 1e-12
"""A variance under this share of the whole data's is rounding."""


def make_pearson_statistic(x: Floats, y: Floats) -> WeightedStatistic:
    """Make Pearson's correlation of `[judgment]` with `[judgment]` a statistic."""
    # Centred first: raw moments of values far from 0 would cancel.
    a = x - x.mean() if len(x) else x
    b = y - y.mean() if len(y) else y
    columns = np.stack([a, b, a * a, b * b, a * b], axis=1)
    # below these variances a resample is constant `[x, y]`
    floors = (
        MAX_VARIANCE_SHARE_OF_ROUNDING * (a * a).mean() if len(x) else 0.0,
        MAX_VARIANCE_SHARE_OF_ROUNDING * (b * b).mean() if len(y) else 0.0,
    )

    def statistic(weights: Floats) -> Floats:
        moments = (weights @ columns / weights.sum(axis=1, keepdims=True)).T
        return _compute_correlation_from_moments(moments, floors)

    return statistic


def make_spearman_statistic(x: Floats, y: Floats) -> WeightedStatistic:
    """Make Spearman's correlation a statistic: Pearson's of the ranks, where ties share their mean rank."""

    def of_tables(tables: Floats) -> Floats:
        # ranks centered around their mean, so that the first moments are 0
        ranks = (
            _compute_mean_ranks_of_ties(tables.sum(axis=2)),
            _compute_mean_ranks_of_ties(tables.sum(axis=1)),
        )
        total = tables.sum(axis=(1, 2))
        a = ranks[0] - (total / 2)[:, None]
        b = ranks[1] - (total / 2)[:, None]
        moments = [
            np.zeros_like(total),
            np.zeros_like(total),
            np.einsum("rxy,rx->r", tables, a * a),
            np.einsum("rxy,ry->r", tables, b * b),
            np.einsum("rxy,rx,ry->r", tables, a, b, optimize=True),
        ]

        return _compute_correlation_from_moments(np.stack(moments), (0.0, 0.0))

    return _make_contingency_table_statistic(of_tables, x, y)


def make_kendall_statistic(x: Floats, y: Floats) -> WeightedStatistic:
    """Make Kendall's tau-b a statistic.

    Pairs in the same order minus those in opposite order, over √(untied in x · untied in y).
    """

    def of_tables(tables: Floats) -> Floats:
        # Weight of all cells of a lower row, by column; then of those in a lower, and in a higher
        # column.
        above = tables.cumsum(axis=1) - tables
        lower = above.cumsum(axis=2) - above
        higher = above.sum(axis=2, keepdims=True) - lower - above
        agreement = (tables * (lower - higher)).sum(axis=(1, 2))
        total = tables.sum(axis=(1, 2))
        untied = []
        for axis in (2, 1):
            untied.append((total**2 - (tables.sum(axis=axis) ** 2).sum(axis=1)) / 2)

        return divide_or_nan(agreement, np.sqrt(untied[0] * untied[1]))

    return _make_contingency_table_statistic(of_tables, x, y)


def estimate_mean_correlation_of_rubrics(
    values: Floats,
    unit: Ints,
    rng: np.random.Generator,
) -> Figure:
    """Compute the mean of Pearson's correlation over all pairs of columns `[conversation, rubric]`."""
    first, second = np.triu_indices(values.shape[1], 1)
    if not len(first):
        return Figure(
            None,
            n=len(values),
            undefined="there are fewer than two rubrics",
        )

    # sums over conversations of products and squares, of all pairs of columns at once
    products = values[:, first] * values[:, second]
    squares = values**2

    def statistic(weights: Floats) -> Floats:
        total = weights.sum(axis=1, keepdims=True)
        mean = weights @ values / total
        spread = np.sqrt(np.maximum(weights @ squares / total - mean**2, 0))
        together = weights @ products / total - mean[:, first] * mean[:, second]
        both = spread[:, first] * spread[:, second]
        correlation: Floats = np.divide(
            together,
            both,
            out=np.zeros_like(both),
            where=both > 1e-9,
        )

        return np.asarray(correlation.mean(axis=1))

    return estimate_figures_on_same_resamples({"mean": Measure(statistic)}, unit, rng, 500)["mean"]


def make_interval_alpha_statistic(x: Floats, y: Floats) -> WeightedStatistic:
    """Make Krippendorff's alpha of two judges on an interval scale a statistic, of whatever values.

    1 − (2n − 1) Σ(x − y)² / (2n Σ(x² + y²) − (Σ(x + y))²), since the values of both are drawn from
    one pool.
    """
    # raw moments of values far from 0 would cancel
    if len(x):
        middle = np.concatenate([x, y]).mean()
    else:
        middle = 0.0

    a = x - middle
    b = y - middle
    columns = np.stack([(a - b) ** 2, a * a + b * b, a + b, np.ones(len(a))], axis=1)

    def statistic(weights: Floats) -> Floats:
        apart, squares, total, n = (weights @ columns).T
        spread = 2 * n * squares - total**2
        return 1 - divide_or_nan(
            (2 * n - 1) * apart,
            np.where(spread > MAX_VARIANCE_SHARE_OF_ROUNDING * (2 * n) ** 2, spread, 0.0),
        )

    return statistic


def make_weighted_kappa_statistic(x: Floats | Ints, y: Floats | Ints) -> WeightedStatistic:
    """Make Cohen's kappa with quadratic weights a statistic: 1 − E(x−y)² / E(x−y′)².

    Here y′ is drawn independently of x; both are values, or places of options `[judgment]`.
    """
    a = x.astype(float)
    b = y.astype(float)
    columns = np.stack([a, b, a * a, b * b, a * b], axis=1)

    def statistic(weights: Floats) -> Floats:
        a, b, aa, bb, ab = (weights @ columns / weights.sum(axis=1, keepdims=True)).T
        chance = aa + bb - 2 * a * b
        return 1 - divide_or_nan(
            aa + bb - 2 * ab, np.where(chance > MAX_VARIANCE_SHARE_OF_ROUNDING, chance, 0.0)
        )

    return statistic


def _make_contingency_table_statistic(
    of_tables: Callable[[Floats], Floats],
    x: Floats | Ints,
    y: Floats | Ints,
) -> WeightedStatistic:
    # place of each judgment in the table of values of x and y
    xs, row = np.unique(x, return_inverse=True)
    ys, column = np.unique(y, return_inverse=True)
    shape = len(xs), len(ys)
    cells = row * shape[1] + column
    # as many resamples at once as their tables fit into memory
    step = max(1, MAX_CONTINGENCY_TABLE_CELLS_PER_BLOCK // max(1, shape[0] * shape[1]))

    def table(weights: Floats) -> Floats:
        # one table a resample `[resample, x, y]`, of the weights that fall on each cell
        size = shape[0] * shape[1]
        flat = (np.arange(len(weights))[:, None] * size + cells).ravel()
        return (
            np.bincount(flat, weights.ravel(), len(weights) * size)
            .astype(float)
            .reshape(
                -1,
                *shape,
            )
        )

    def statistic(weights: Floats) -> Floats:
        blocks = []
        for start in range(0, len(weights), step):
            blocks.append(of_tables(table(weights[start : start + step])))
        return np.concatenate(blocks)

    return statistic


def _compute_mean_ranks_of_ties(counts: Floats) -> Floats:
    return np.asarray(counts.cumsum(axis=1) - counts / 2)


def _compute_correlation_from_moments(moments: Floats, floors: tuple[float, float]) -> Floats:
    # means of x, y, x², y² and xy `[resample]`
    a, b, aa, bb, ab = moments
    spread = aa - a * a, bb - b * b
    varies = (spread[0] > floors[0]) & (spread[1] > floors[1])
    correlation = divide_or_nan(
        ab - a * b,
        np.sqrt(np.where(varies, spread[0] * spread[1], 0.0)),
    )
    return np.clip(correlation, -1.0, 1.0)  # rounding


MeasurementLevel = Literal["nominal", "ordinal", "interval"]


def estimate_krippendorff_alpha(
    text: Ints,
    judge: Ints,
    answer: Ints,
    values: tuple[float, ...],
    level: MeasurementLevel,
    rng: np.random.Generator | None = None,
    resamples: int = BOOTSTRAP_RESAMPLES,
) -> Figure:
    """Compute Krippendorff's alpha between judges: 1 is full agreement, 0 is chance.

    Only texts with two or more judges count, in `n` and `units`, too. Full agreement has no
    interval: resamples can't tell how seldom judges would disagree.

    Args:
        text: Which text each judgment is of `[judgment]`.
        judge: Who gave it, −1 for somebody unknown `[judgment]`; unknown judges are taken for
            different ones. Of several answers by one judge to one text the first counts.
        answer: Place of the option that was chosen `[judgment]`.
        values: What each option is worth.
    """
    # answers by text and option `[text, option]`, of texts with two judges or more
    counts = _count_answers_per_text_and_option(text, judge, answer, len(values))
    counts = counts[counts.sum(axis=1) > 1]
    n = int(counts.sum())
    if not n:
        return Figure(None, undefined="no text has two judges", units=0)
    if (counts.sum(axis=0) > 0).sum() < 2:
        return Figure(
            None,
            n=n,
            undefined="all answers are alike",
            units=len(counts),
        )

    from krippendorff import alpha as value_of

    value = value_of(
        value_counts=counts,
        value_domain=np.array(values),
        level_of_measurement=level,
    )
    measure = Measure(_make_krippendorff_alpha_statistic(counts, np.array(values), level))
    # A unit of resampling is a text, so each stands for all its judgments here.
    figure = estimate_figures_on_same_resamples(
        {"alpha": measure}, np.arange(len(counts)), rng, resamples
    )["alpha"]
    # so does every resample, which doesn't make it certain
    if (counts.max(axis=1) == counts.sum(axis=1)).all():
        return Figure(1.0, n=n, units=len(counts))

    return Figure(
        float(value),
        figure.low,
        figure.high,
        n,
        units=len(counts),
    )


def _count_answers_per_text_and_option(
    text: Ints,
    judge: Ints,
    answer: Ints,
    options: int,
) -> Ints:
    if not len(text):
        return np.zeros((0, options), np.int64)

    # A number of its own for everybody who is not known.
    who = np.where(judge < 0, judge.max() + 1 + np.arange(len(judge)), judge)
    # the first answer of each judge to each text
    pairs = np.stack([text, who], axis=1)
    firsts = np.unique(pairs, axis=0, return_index=True)[1]
    row = np.unique(text, return_inverse=True)[1][firsts]
    cells = row * options + answer[firsts]

    return np.bincount(cells, minlength=(row.max() + 1) * options).reshape(-1, options)


def _make_krippendorff_alpha_statistic(
    counts: Ints, values: Floats, level: MeasurementLevel
) -> WeightedStatistic:
    # pairs of answers within a text, divided so that a text counts by its number of answers
    options = counts.shape[1]
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(options)
    coincidences = (pairs / (counts.sum(axis=1) - 1)[:, None, None]).reshape(
        len(counts),
        -1,
    )

    def statistic(weights: Floats) -> Floats:
        # observed coincidences, and those expected by chance `[resample, option, option]`
        observed = (weights @ coincidences).reshape(-1, options, options)
        totals = observed.sum(axis=2)
        n = totals.sum(axis=1)
        chance = totals[:, :, None] * totals[:, None, :] - totals[:, :, None] * np.eye(options)
        distances = _compute_squared_distances_of_answers(totals, values, level)
        disagreements = (observed * distances).sum(axis=(1, 2))
        by_chance = (chance * distances).sum(axis=(1, 2)) / (n - 1)
        disagreement: Floats = np.divide(
            disagreements,
            by_chance,
            out=np.full(len(n), np.nan),
            where=by_chance > 0,
        )

        return 1 - disagreement

    return statistic


def _compute_squared_distances_of_answers(
    totals: Floats, values: Floats, level: MeasurementLevel
) -> Floats:
    if level == "nominal":
        return np.broadcast_to(
            1 - np.eye(len(values)),
            (len(totals), len(values), len(values)),
        )

    if level == "interval":
        return np.broadcast_to(
            (values[:, None] - values) ** 2,
            (len(totals), len(values), len(values)),
        )

    # The weight of all options from the one to the other, of the two ends one half.
    middles = totals.cumsum(axis=1) - totals / 2
    return np.asarray((middles[:, :, None] - middles[:, None, :]) ** 2)


def estimate_weighted_kappa(
    first: Floats,
    second: Floats,
    unit: Ints,
    rng: np.random.Generator | None = None,
) -> Figure:
    """Compute Cohen's κ with quadratic weights between two sets of answers to the same questions.

    Args:
        first: Values of the answers `[answer]`.
        second: Those of the other set `[answer]`.
        unit: What each answer belongs to and is resampled with `[answer]`.

    Source: Cohen 1968, doi:10.1037/h0026256.
    """
    measure = Measure(make_weighted_kappa_statistic(first, second), empty="all answers are alike")
    return estimate_figures_on_same_resamples({"kappa": measure}, unit, rng)["kappa"]
