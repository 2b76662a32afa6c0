"""How well scores tell good conversations from bad, each figure with its 95 % interval.

Source: Biyani et al. 2024 for ΔNetSAT and YieldRate. Intervals are bootstrap ones, see `resampling`; that of the AUC is
worked out on its log-odds, for near 1 percentiles hold it 85 times of 100. What lies beyond a window's sides, often a
few, has exact intervals, and so has a figure of 0 or 1: to a bootstrap 9 right of 9 are beyond doubt.

Most figures are ratios of sums, which one matrix product gives for all resamples at once. Inside this module NaN stands
for a ratio with nothing below the line; a `Metric` never holds one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from pollex.measures.intervals import share_interval
from pollex.measures.resampling import FEWEST, RESAMPLES, Sample, ends, ends_of_odds
from pollex.selection.losses import Bools, Floats, Ints, require_both_classes
from pollex.selection.threshold import Window


@dataclass(frozen=True)
class Metric:
    """A figure with its interval.

    Attributes:
        value: None when it is undefined.
        low: Lower end of the 95 % interval; None with fewer than `FEWEST` conversations of a class, where a bootstrap
            says nothing, and when the value is None.
        high: Upper end.
        n: Conversations that it rests on.
        undefined: Why there is no value; empty when there is one.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    undefined: str = ""


@dataclass(frozen=True)
class Assessment:
    """All figures of one set of scores.

    Attributes:
        auc: How often a positive conversation scores over a negative one, ties half.
        delta_netsat: Mean NetSAT of positives less that of negatives.
        yield_rate: Share of conversations outside the uncertainty window.
        confident_accuracy: Accuracy among those outside.
    """

    n: int
    positives: int
    negatives: int
    accuracy: Metric
    precision: Metric
    recall: Metric
    f1: Metric
    auc: Metric
    delta_netsat: Metric
    yield_rate: Metric
    confident_accuracy: Metric


@dataclass(frozen=True)
class Beyond:
    """What a window does to labelled conversations, with exact 95 % intervals.

    Attributes:
        yield_rate: Share outside the window.
        accuracy: Labelled right, of those.
        positive: Truly positive, of those over the upper side.
        negative: Truly negative, of those at or under the lower side.
    """

    yield_rate: Metric
    accuracy: Metric
    positive: Metric
    negative: Metric


Statistic = Callable[[Floats], Floats]
"""Weights `[resample, conversation]`, positives first, to figures `[resample]`; NaN where there is none."""


Exact = Callable[[float], tuple[float, float]]
"""The interval of a figure that is 0 or 1, of which all resamples are alike."""


@dataclass(frozen=True)
class _Measure:
    """A statistic, what it rests on, what it means when it is NaN, and its interval when it is 0 or 1.

    Attributes:
        odds: Whether its interval is worked out on its log-odds.
        units: How much it rests on, where that is less than the smaller class.
    """

    statistic: Statistic
    n: int
    empty: str = ""
    needs_labels: bool = True
    exact: Exact | None = None
    odds: bool = False
    units: int | None = None


def assess(
    scores: Floats,
    positive: Bools,
    theta: float,
    window: Window,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    together: Ints | None = None,
) -> Assessment:
    """Measure scores against labels. One class, none labelled positive, an empty log: undefined, never an error.

    Args:
        scores: NetSAT `[conversation]`.
        positive: Labels `[conversation]`.
        theta: Scores over it are labelled positive.
        together: What goes together, a user's conversations for example, bears one number `[conversation]`; None: each
            conversation is alone.
    """
    order = _positives_first(positive)
    scores, positive = np.asarray(scores, float)[order], np.asarray(positive, bool)[order]
    said, outside = scores > theta, window.confident(scores)
    right, everyone = said == positive, np.ones(len(scores), bool)
    sizes = int(positive.sum()), int((~positive).sum())
    sample = Sample(sizes, None if together is None else np.asarray(together)[order])
    either = sample.units(said | positive)
    measures = {
        "accuracy": _measured_share(right, everyone, sample),
        "precision": _measured_share(said & positive, said, sample, "nothing is labelled positive"),
        "recall": _measured_share(said & positive, positive, sample),
        # F1 = 2·TP / (labelled positive + truly positive) = 2·J / (1 + J), J the share of TP in those that are either
        "f1": _Measure(
            _share(2 * (said & positive), said.astype(int) + positive),
            sum(sizes),
            exact=lambda value: _f1_of_shares(*_all_or_none(either)(value)),
        ),
        # Of as many pairs that share no conversation all are won, or all are lost.
        "auc": _Measure(auc_statistic(scores, sizes[0]), sum(sizes), exact=_all_or_none(min(sample.having)), odds=True),
        "delta_netsat": _Measure(_mean_difference(scores, sizes[0]), sum(sizes)),
        "yield_rate": _measured_share(outside, everyone, sample, needs_labels=False),
        "confident_accuracy": _measured_share(
            right & outside, outside, sample, "every score is in the uncertainty window"
        ),
    }
    metrics = _measured(measures, sample, rng, resamples)
    return Assessment(n=sum(sizes), positives=sizes[0], negatives=sizes[1], **metrics)


def beyond(window: Window, scores: Floats, positive: Bools, together: Ints | None = None) -> Beyond:
    """What lies outside a window, and how often it is right there.

    Args:
        scores: NetSAT `[conversation]`.
        positive: Labels `[conversation]`.
        together: As for `assess`.
    """
    over, under, nothing = window.over(scores), window.under(scores), "nothing is outside the window"
    unit = np.arange(len(scores)) if together is None else np.asarray(together)
    return Beyond(
        yield_rate=_exact(over | under, np.ones(len(scores), bool), unit, "no conversations"),
        accuracy=_exact((over & positive) | (under & ~positive), over | under, unit, nothing),
        positive=_exact(over & positive, over, unit, f"{nothing} on this side"),
        negative=_exact(under & ~positive, under, unit, f"{nothing} on this side"),
    )


def _exact(part: Bools, whole: Bools, unit: Ints, empty: str) -> Metric:
    """A share with the interval that it has if what goes together has but one thing to say, which is the widest."""
    hits, n = int(part.sum()), int(whole.sum())
    if not n:
        return Metric(None, None, None, 0, empty)
    low, high = share_interval(hits, n, units=len(np.unique(unit[whole])))
    return Metric(hits / n, low, high, n)


def auc(scores: Floats, positive: Bools) -> float:
    """How often a positive conversation scores over a negative one, ties half (Mann and Whitney 1947).

    Raises:
        BadLabels: All labels are alike.
    """
    require_both_classes(positive)
    ordered = np.concatenate([scores[positive], scores[~positive]])
    return float(auc_statistic(ordered, int(positive.sum()))(np.ones((1, len(ordered))))[0])


def auc_difference(
    first: Floats,
    second: Floats,
    positive: Bools,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    together: Ints | None = None,
) -> Metric:
    """AUC of `first` less that of `second` on the same conversations, both measured on the same resamples.

    Where one of them is 0 or 1, and the other so, too, or constant, all resamples are alike, which doesn't make the
    difference certain: its interval is then as wide as both of theirs allow.

    Args:
        together: As for `assess`.
    """
    order = _positives_first(positive)
    sizes = int(positive.sum()), int((~positive).sum())
    sample = Sample(sizes, None if together is None else np.asarray(together)[order])
    one, other = (auc_statistic(scores[order], sizes[0]) for scores in (first, second))
    measure = _Measure(lambda weights: one(weights) - other(weights), sum(sizes))
    found = _measured({"difference": measure}, sample, rng, resamples)["difference"]
    if found.low is None or found.low != found.high:
        return found
    own = [float(statistic(np.ones((1, sum(sizes))))[0]) for statistic in (one, other)]
    if not {0.0, 1.0} & set(own):
        return found
    exact = _all_or_none(min(sample.having))
    (low, high), (others_low, others_high) = (exact(value) if value in (0.0, 1.0) else (value, value) for value in own)
    return replace(found, low=low - others_high, high=high - others_low)


def auc_statistic(scores: Floats, positives: int) -> Statistic:
    """AUC as a function of weights.

    Args:
        scores: `[conversation]`, positives first.
        positives: How many of them are positive.
    """
    order = np.argsort(scores, kind="stable")
    levels = np.flatnonzero(np.diff(scores[order], prepend=-np.inf) > 0)
    up = order < positives

    def statistic(weights: Floats) -> Floats:
        sorted_weights = weights[:, order]
        ups = np.add.reduceat(sorted_weights * up, levels, axis=1)
        downs = np.add.reduceat(sorted_weights * ~up, levels, axis=1)
        won = (ups * (downs.cumsum(1) - downs / 2)).sum(1)
        return _ratio(won, ups.sum(1) * downs.sum(1))

    return statistic


def _positives_first(positive: Bools) -> Ints:
    return np.argsort(~np.asarray(positive, bool), kind="stable")


def _measured(
    measures: Mapping[str, _Measure], sample: Sample, rng: np.random.Generator, resamples: int
) -> dict[str, Metric]:
    if sum(sample.sizes) == 0:
        return {name: Metric(None, None, None, 0, "no conversations") for name in measures}
    actual = np.ones((1, sum(sample.sizes)))
    draws: dict[str, list[Floats]] = {name: [] for name in measures}
    for weights in sample.resampled(resamples, rng):
        for name, measure in measures.items():
            draws[name].append(measure.statistic(weights))
    return {
        name: _metric(measure, float(measure.statistic(actual)[0]), np.concatenate(draws[name]), sample)
        for name, measure in measures.items()
    }


def _metric(measure: _Measure, value: float, draws: Floats, sample: Sample) -> Metric:
    if measure.needs_labels and 0 in sample.sizes:
        one = "negative" if sample.sizes[0] == 0 else "positive"
        return Metric(None, None, None, measure.n, f"only {one} conversations")
    if np.isnan(value):
        return Metric(None, None, None, measure.n, measure.empty)
    units = min(sample.having) if measure.needs_labels else max(sample.having)
    if measure.exact and value in (0.0, 1.0) and units > 1:
        return Metric(value, *measure.exact(value), measure.n)
    units, found = min(units, measure.units or units), draws[~np.isnan(draws)]
    if units < FEWEST or len(found) < 2:
        return Metric(value, None, None, measure.n)
    low, high = ends_of_odds(value, found, units) if measure.odds else ends(found, units)
    return Metric(value, low, high, measure.n)


def _share(part: ArrayLike, whole: ArrayLike) -> Statistic:
    """The weighted sum of `part` over that of `whole`."""
    columns = np.stack([part, whole], axis=1).astype(float)

    def statistic(weights: Floats) -> Floats:
        sums = weights @ columns
        return _ratio(sums[:, 0], sums[:, 1])

    return statistic


def _measured_share(part: Bools, whole: Bools, sample: Sample, empty: str = "", needs_labels: bool = True) -> _Measure:
    units = sample.units(whole)
    share, n = _share(part, whole), int(whole.sum())
    return _Measure(share, n, empty, needs_labels, _all_or_none(units), units=units)


def _all_or_none(n: int) -> Exact:
    """The interval of a share of `n`, of which all or none are counted."""
    return lambda share: share_interval(n if share else 0, n)


def _f1_of_shares(low: float, high: float) -> tuple[float, float]:
    return 2 * low / (1 + low), 2 * high / (1 + high)


def _mean_difference(scores: Floats, positives: int) -> Statistic:
    up = np.arange(len(scores)) < positives
    over, under = _share(scores * up, up), _share(scores * ~up, ~up)
    return lambda weights: over(weights) - under(weights)


def _ratio(part: Floats, whole: Floats) -> Floats:
    ratios: Floats = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return ratios
