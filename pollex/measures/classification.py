"""Figures of how well scores separate the classes, with 95 % intervals.

Source: Biyani et al. 2024 for ΔNetSAT and YieldRate. Intervals are bootstrap ones, see `intervals`;
that of the AUC is computed on its log-odds, because near 1 percentiles hold it 85 times of 100.
What lies beyond a window's sides, often a few, has exact intervals, and so has a figure of 0 or 1:
to a bootstrap 9 right of 9 are beyond doubt.

Most figures are ratios of sums, which one matrix product gives for all resamples at once. Inside
this module NaN stands for a ratio whose divisor is 0; a `Figure` never holds one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from pollex.errors import BadLabels
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.intervals import (
    BOOTSTRAP_RESAMPLES,
    MIN_UNITS_FOR_INTERVAL,
    ClassSample,
    Figure,
    Measure,
    WeightedStatistic,
    compute_clopper_pearson_interval,
    compute_interval_bounds_from_resamples,
    compute_interval_bounds_on_log_odds,
    divide_or_nan,
    estimate_figures_on_same_resamples,
    make_share_with_exact_interval,
)

MIN_CONVERSATIONS_OUTSIDE_WINDOW_TO_REPORT = 20
"""Conversations outside the window from which on people are told how often these are right."""

TOO_FEW_OUTSIDE_WINDOW_NOTE = "too few clear cases to say"


@dataclass(frozen=True)
class Assessment:
    """All figures of one set of scores.

    Attributes:
        auc: How often a positive conversation scores over a negative one, ties half.
        delta_netsat: Mean NetSAT of positives minus that of negatives.
        yield_rate: Share of conversations outside the uncertainty window.
        confident_accuracy: Accuracy among those outside.
    """

    n: int
    positives: int
    negatives: int
    accuracy: Figure
    precision: Figure
    recall: Figure
    f1: Figure
    auc: Figure
    delta_netsat: Figure
    yield_rate: Figure
    confident_accuracy: Figure

    def shown(self, name: str) -> Figure:
        """Return a figure as people read it: where few cases are clear, it says so instead."""
        figure: Figure = getattr(self, name)
        if (
            name == "confident_accuracy"
            and figure.value is not None
            and figure.n < MIN_CONVERSATIONS_OUTSIDE_WINDOW_TO_REPORT
        ):
            return Figure(None, n=figure.n, undefined=TOO_FEW_OUTSIDE_WINDOW_NOTE)
        return figure


@dataclass(frozen=True)
class WindowAssessment:
    """Share of conversations outside a window and its precision, with exact 95 % intervals.

    Attributes:
        yield_rate: Share outside the window.
        accuracy: Labeled right, of those.
        positive: Truly positive, of those over the upper side.
        negative: Truly negative, of those at or under the lower side.
    """

    yield_rate: Figure
    accuracy: Figure
    positive: Figure
    negative: Figure


ExactIntervalOfZeroOrOne = Callable[[float], tuple[float, float]]
"""The interval of a figure that is 0 or 1, of which all resamples are alike."""


@dataclass(frozen=True)
class _ClassMeasure:
    """A statistic with its sample size, its meaning if NaN, and exact intervals.

    Attributes:
        odds: Whether its interval is computed on its log-odds.
        units: Effective sample size, if smaller than the smaller class.
    """

    statistic: WeightedStatistic
    n: int
    empty: str = ""
    needs_labels: bool = True
    exact: ExactIntervalOfZeroOrOne | None = None
    odds: bool = False
    units: int | None = None


def assess_scores_against_labels(
    scores: Floats,
    positive: Bools,
    theta: float | Floats,
    outside: Bools,
    rng: np.random.Generator,
    resamples: int = BOOTSTRAP_RESAMPLES,
    together: Ints | None = None,
) -> Assessment:
    """Measure scores against labels.

    With one class, nothing labeled positive or an empty log, figures are undefined; this is never
    an error.

    Args:
        scores: NetSAT `[conversation]`.
        positive: Labels `[conversation]`.
        theta: Scores over it are labeled positive; one for all, or `[conversation]`.
        outside: Whether a score lies outside the uncertainty window `[conversation]`.
        together: One number for what belongs together, a user's conversations for example
            `[conversation]`; None: each conversation is alone.
    """
    # positives first, in all arrays, as the statistics expect
    order, sample = _order_positives_first(np.asarray(positive, bool), together)
    scores = np.asarray(scores, float)[order]
    positive = np.asarray(positive, bool)[order]
    called_positive = scores > np.broadcast_to(theta, scores.shape)[order]
    outside = np.asarray(outside, bool)[order]
    # shares of which the parts and wholes are masks `[conversation]`
    right = called_positive == positive
    everyone = np.ones(len(scores), bool)
    sizes = sample.sizes
    either = sample.units(called_positive | positive)
    mean_of_positives = _make_share_statistic(scores * positive, positive)
    mean_of_negatives = _make_share_statistic(scores * ~positive, ~positive)
    measures = {
        "accuracy": _make_share_measure(right, everyone, sample),
        "precision": _make_share_measure(
            called_positive & positive, called_positive, sample, "nothing is labeled positive"
        ),
        "recall": _make_share_measure(called_positive & positive, positive, sample),
        # F1 = 2·TP / (labeled positive + truly positive) = 2·J / (1 + J), J the share of TP in
        # those that are either
        "f1": _ClassMeasure(
            _make_share_statistic(
                2 * (called_positive & positive), called_positive.astype(int) + positive
            ),
            sum(sizes),
            exact=lambda value: _bound_f1_of_zero_or_one(
                *_make_exact_interval_of_zero_or_one(either)(value)
            ),
        ),
        # Of as many pairs that share no conversation all are won, or all are lost.
        "auc": _ClassMeasure(
            make_auc_statistic(scores, sizes[0]),
            sum(sizes),
            exact=_make_exact_interval_of_zero_or_one(min(sample.having)),
            odds=True,
        ),
        "delta_netsat": _ClassMeasure(
            lambda weights: mean_of_positives(weights) - mean_of_negatives(weights), sum(sizes)
        ),
        "yield_rate": _make_share_measure(outside, everyone, sample, needs_labels=False),
        "confident_accuracy": _make_share_measure(
            right & outside,
            outside,
            sample,
            "none, since every score is in its window of doubt",
        ),
    }
    metrics = _estimate_figures_of_measures(measures, sample, rng, resamples)

    return Assessment(
        n=sum(sizes),
        positives=sizes[0],
        negatives=sizes[1],
        **metrics,
    )


def assess_uncertainty_window(
    over: Bools,
    under: Bools,
    positive: Bools,
    together: Ints | None = None,
) -> WindowAssessment:
    """Measure how much lies outside a window, and how often it is right there.

    Args:
        over: Whether a score is confidently positive `[conversation]`.
        under: Whether it is confidently negative `[conversation]`.
        positive: Labels `[conversation]`.
        together: As for `assess_scores_against_labels`.
    """
    nothing = "nothing is outside the window"
    if together is None:
        unit = np.arange(len(positive))
    else:
        unit = np.asarray(together)

    yield_rate = _make_share_figure_with_exact_interval(
        over | under,
        np.ones(len(positive), bool),
        unit,
        "no conversations",
    )
    accuracy = _make_share_figure_with_exact_interval(
        (over & positive) | (under & ~positive),
        over | under,
        unit,
        nothing,
    )
    return WindowAssessment(
        yield_rate=yield_rate,
        accuracy=accuracy,
        positive=_make_share_figure_with_exact_interval(
            over & positive, over, unit, f"{nothing} on this side"
        ),
        negative=_make_share_figure_with_exact_interval(
            under & ~positive, under, unit, f"{nothing} on this side"
        ),
    )


def _make_share_figure_with_exact_interval(
    part: Bools,
    whole: Bools,
    unit: Ints,
    empty: str,
) -> Figure:
    return make_share_with_exact_interval(
        int(part.sum()),
        int(whole.sum()),
        len(np.unique(unit[whole])),
        empty,
    )


def compute_auc(scores: Floats, positive: Bools) -> float:
    """Compute how often a positive conversation scores over a negative one, ties half.

    Source: Mann and Whitney 1947.

    Raises:
        BadLabels: All labels are alike.
    """
    require_both_classes(positive)
    ordered = np.concatenate([scores[positive], scores[~positive]])
    return float(make_auc_statistic(ordered, int(positive.sum()))(np.ones((1, len(ordered))))[0])


def estimate_auc(
    scores: Floats,
    positive: Bools,
    rng: np.random.Generator,
    resamples: int = BOOTSTRAP_RESAMPLES,
    together: Ints | None = None,
) -> Figure:
    """Compute the AUC with its interval; undefined with one class.

    Args:
        together: As for `assess_scores_against_labels`.
    """
    # an AUC of 0 or 1 has the exact interval of as many pairs as share no conversation
    order, sample = _order_positives_first(positive, together)
    exact = None
    if 0 not in sample.sizes:
        exact = _make_exact_interval_of_zero_or_one(min(sample.having))

    measure = _ClassMeasure(
        make_auc_statistic(scores[order], sample.sizes[0]),
        len(order),
        exact=exact,
        odds=True,
    )
    return _estimate_figures_of_measures({"auc": measure}, sample, rng, resamples)["auc"]


def estimate_auc_difference(
    first: Floats,
    second: Floats,
    positive: Bools,
    rng: np.random.Generator,
    resamples: int = BOOTSTRAP_RESAMPLES,
    together: Ints | None = None,
) -> Figure:
    """Subtract the AUC of `second` from that of `first`, both measured on the same resamples.

    Where one of them is 0 or 1, and the other is, too, or is constant, all resamples are alike,
    which doesn't make the difference certain: its interval is then as wide as both of theirs allow.

    Args:
        together: As for `assess_scores_against_labels`.
    """
    # both statistics see the same resamples
    order, sample = _order_positives_first(positive, together)
    auc_of_first = make_auc_statistic(first[order], sample.sizes[0])
    auc_of_second = make_auc_statistic(second[order], sample.sizes[0])
    measure = _ClassMeasure(
        lambda weights: auc_of_first(weights) - auc_of_second(weights),
        len(order),
    )
    figure = _estimate_figures_of_measures({"difference": measure}, sample, rng, resamples)[
        "difference"
    ]
    # an interval of no width, though an AUC of 0 or 1 is not certain
    if figure.low is None or figure.low != figure.high:
        return figure

    values = []
    for statistic in (auc_of_first, auc_of_second):
        values.append(float(statistic(np.ones((1, len(order))))[0]))

    if not {0.0, 1.0} & set(values):
        return figure

    # as wide as the exact intervals of both allow
    exact = _make_exact_interval_of_zero_or_one(min(sample.having))
    (low, high), (others_low, others_high) = (
        exact(value) if value in (0.0, 1.0) else (value, value) for value in values
    )
    return replace(figure, low=low - others_high, high=high - others_low)


def make_auc_statistic(scores: Floats, positives: int) -> WeightedStatistic:
    """Express the AUC as a function of weights.

    Args:
        scores: `[conversation]`, positives first.
        positives: How many of them are positive.
    """
    # the statistic sums weights by level: scores that are the same are one level
    order = np.argsort(scores, kind="stable")
    levels = np.flatnonzero(np.diff(scores[order], prepend=-np.inf) > 0)
    up = order < positives

    def statistic(weights: Floats) -> Floats:
        sorted_weights = weights[:, order]
        ups = np.add.reduceat(sorted_weights * up, levels, axis=1)
        downs = np.add.reduceat(sorted_weights * ~up, levels, axis=1)
        # a positive wins over all negatives below its level, and half of those on it
        won = (ups * (downs.cumsum(1) - downs / 2)).sum(1)
        return divide_or_nan(won, ups.sum(1) * downs.sum(1))

    return statistic


def require_both_classes(positive: Bools) -> None:
    """Raise `BadLabels` unless there are labels of both classes."""
    if len(positive) == 0 or positive.all() or not positive.any():
        raise BadLabels(
            f"{int(positive.sum())} of {len(positive)} conversations are positive",
            hint="give conversations of both labels",
        )


def _order_positives_first(
    positive: Bools, together: Ints | None = None
) -> tuple[Ints, ClassSample]:
    order = np.argsort(~positive, kind="stable")
    sizes = (int(positive.sum()), int((~positive).sum()))
    return order, ClassSample(sizes, None if together is None else np.asarray(together)[order])


def _estimate_figures_of_measures(
    measures: Mapping[str, _ClassMeasure],
    sample: ClassSample,
    rng: np.random.Generator,
    resamples: int,
) -> dict[str, Figure]:
    if sum(sample.sizes) == 0:
        figures: dict[str, Figure] = {}
        for name in measures:
            figures[name] = Figure(None, None, None, 0, "no conversations")
        return figures

    # the values of all resamples, by measure
    actual = np.ones((1, sum(sample.sizes)))
    draws: dict[str, list[Floats]] = {name: [] for name in measures}
    for weights in sample.resampled(resamples, rng):
        for name, measure in measures.items():
            draws[name].append(measure.statistic(weights))

    return {
        name: _make_figure_from_resamples(
            measure, float(measure.statistic(actual)[0]), np.concatenate(draws[name]), sample
        )
        for name, measure in measures.items()
    }


def _make_figure_from_resamples(
    measure: _ClassMeasure,
    value: float,
    draws: Floats,
    sample: ClassSample,
) -> Figure:
    if measure.needs_labels and 0 in sample.sizes:
        only_class = "negative" if sample.sizes[0] == 0 else "positive"
        return Figure(
            None,
            None,
            None,
            measure.n,
            f"only {only_class} conversations",
        )
    if np.isnan(value):
        return Figure(None, None, None, measure.n, measure.empty)

    # too few independent units have no interval; a share of 0 or 1 has an exact one
    if measure.needs_labels:
        units = min(sample.having)
    else:
        units = max(sample.having)

    if measure.exact and value in (0.0, 1.0) and units > 1:
        return Figure(value, *measure.exact(value), measure.n)

    units = min(units, measure.units or units)
    defined = draws[~np.isnan(draws)]
    if units < MIN_UNITS_FOR_INTERVAL or len(defined) < 2:
        return Figure(value, None, None, measure.n)

    if measure.odds:
        low, high = compute_interval_bounds_on_log_odds(value, defined, units)
    else:
        low, high = compute_interval_bounds_from_resamples(defined, units)

    return Figure(value, low, high, measure.n)


def _make_share_statistic(part: ArrayLike, whole: ArrayLike) -> WeightedStatistic:
    columns = np.stack([part, whole], axis=1).astype(float)

    def statistic(weights: Floats) -> Floats:
        sums = weights @ columns
        return divide_or_nan(sums[:, 0], sums[:, 1])

    return statistic


def _make_share_measure(
    part: Bools,
    whole: Bools,
    sample: ClassSample,
    empty: str = "",
    needs_labels: bool = True,
) -> _ClassMeasure:
    units = sample.units(whole)
    share = _make_share_statistic(part, whole)
    n = int(whole.sum())

    return _ClassMeasure(
        share,
        n,
        empty,
        needs_labels,
        _make_exact_interval_of_zero_or_one(units),
        units=units,
    )


def _make_exact_interval_of_zero_or_one(n: int) -> ExactIntervalOfZeroOrOne:
    return lambda share: compute_clopper_pearson_interval(n if share else 0, n)


def _bound_f1_of_zero_or_one(low: float, high: float) -> tuple[float, float]:
    return 2 * low / (1 + low), 2 * high / (1 + high)


RATIO_RESAMPLES, GUESSING_AUC = 500, 0.5
"""Resamples of figures beside other figures, and the AUC of guessing."""


def estimate_share_of_plain_auc_gain_reached(
    ours: Floats,
    plain: Floats,
    positive: Bools,
    unit: Ints,
    rng: np.random.Generator,
) -> Figure:
    """Compute (AUC − ½) of our scores over (AUC − ½) of a plain method's.

    Args:
        ours: `[conversation]`.
        plain: `[conversation]`.
        positive: `[conversation]`.
        unit: Number of what belongs together `[conversation]`.
    """
    if positive.all() or not positive.any():
        return Figure(None, n=len(positive), undefined="there is only one class")

    # there is nothing to recover where the plain method itself only guesses
    order = _order_positives_first(positive)[0]
    our_auc = make_auc_statistic(ours[order], int(positive.sum()))
    plain_auc = make_auc_statistic(plain[order], int(positive.sum()))
    plain_figure = estimate_figures_on_same_resamples(
        {"plain": Measure(plain_auc)}, unit[order], rng, RATIO_RESAMPLES
    )["plain"]
    if plain_figure.low is None or plain_figure.low <= GUESSING_AUC:
        return Figure(
            None,
            n=len(positive),
            undefined="the plain method itself is not surely better than guessing",
        )

    share = Measure(
        lambda weights: divide_or_nan(
            our_auc(weights) - GUESSING_AUC, plain_auc(weights) - GUESSING_AUC
        )
    )
    return estimate_figures_on_same_resamples({"share": share}, unit[order], rng, RATIO_RESAMPLES)[
        "share"
    ]


def measure_auc_by_label_count(
    scores: Mapping[int, Sequence[Floats]],
    positive: Bools,
    unit: Ints,
    rng: np.random.Generator,
    more: int,
) -> tuple[dict[int, Figure], Figure]:
    """Measure how AUC grows with labels, and go on by AUC = a + b·ln(labels), fitted by least squares.

    Args:
        scores: By number of labels, of each draw `[conversation]`; all held-out.
        positive: `[conversation]`.
        unit: Number of what belongs together `[conversation]`.
        more: Further labels to tell the worth of.

    Returns:
        By number of labels, the mean AUC over draws of these; and what further labels are worth in
        AUC.
    """
    # the mean AUC over draws of labels, for each number of labels
    order = _order_positives_first(positive)[0]
    up = int(positive.sum())
    statistics = {}
    for size, draws in scores.items():
        statistics[size] = [make_auc_statistic(draw[order], up) for draw in draws]

    def mean_auc(of_draws: Sequence[WeightedStatistic], weights: Floats) -> Floats:
        aucs: Floats = np.mean([statistic(weights) for statistic in of_draws], axis=0)
        return aucs

    def mean_aucs(weights: Floats) -> Floats:
        return np.stack([mean_auc(of_draws, weights) for of_draws in statistics.values()])

    # slope of a least-squares line on the logarithm of labels, times the step to more labels
    sizes = np.array(list(scores), float)
    centered = np.log(sizes) - np.log(sizes).mean()
    step = np.log((sizes[-1] + more) / sizes[-1]) / (centered**2).sum()
    measures = {
        str(size): Measure(partial(mean_auc, of_draws)) for size, of_draws in statistics.items()
    }
    estimates = estimate_figures_on_same_resamples(
        {
            **measures,
            "more": Measure(lambda weights: step * (centered @ mean_aucs(weights))),
        },
        unit[order],
        rng,
        RATIO_RESAMPLES,
    )

    return {size: estimates[str(size)] for size in scores}, estimates["more"]
