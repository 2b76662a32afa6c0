"""How well scores tell good conversations from bad, each figure with its 95 % bootstrap interval.

Sources: Biyani et al. 2024 for ΔNetSAT and YieldRate; Efron and Tibshirani 1993, chapter 13, for percentile intervals.
What lies beyond a window's sides, often a few, has exact intervals, and so has a figure of 0 or 1: to a bootstrap 9
right of 9 are beyond doubt.

Each class is resampled by itself: splits are stratified, so how many of each class there are is no chance, and every
resample has both. A resample is its weights, how often each conversation is in it; most figures are then ratios of
sums that one matrix product gives for all resamples at once. Inside this module NaN stands for a ratio with nothing
below the line; a `Metric` never holds one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pollex.selection.agreement import share_interval
from pollex.selection.losses import Bools, Floats, Ints, require_both_classes
from pollex.selection.threshold import Window

RESAMPLES = 2000
LEVEL = 0.95
BLOCK = 1 << 21
"""Weights held at once: 16 MB."""


@dataclass(frozen=True)
class Metric:
    """A figure with its interval.

    Attributes:
        value: None when it is undefined.
        low: Lower end of the 95 % interval; None with fewer than two conversations of a class, where a bootstrap says
            nothing, and when the value is None.
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
    """A statistic, what it rests on, what it means when it is NaN, and its interval when it is 0 or 1."""

    statistic: Statistic
    n: int
    empty: str = ""
    needs_labels: bool = True
    exact: Exact | None = None


def assess(
    scores: Floats,
    positive: Bools,
    theta: float,
    window: Window,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Assessment:
    """Measure scores against labels. One class, none labelled positive, an empty log: undefined, never an error.

    Args:
        scores: NetSAT `[conversation]`.
        positive: Labels `[conversation]`.
        theta: Scores over it are labelled positive.
    """
    order = _positives_first(positive)
    scores, positive = np.asarray(scores, float)[order], np.asarray(positive, bool)[order]
    said, outside = scores > theta, window.confident(scores)
    right, everyone = said == positive, np.ones(len(scores), bool)
    sizes = int(positive.sum()), int((~positive).sum())
    either = int((said | positive).sum())
    measures = {
        "accuracy": _measured_share(right, everyone),
        "precision": _measured_share(said & positive, said, "nothing is labelled positive"),
        "recall": _measured_share(said & positive, positive),
        # F1 = 2·TP / (labelled positive + truly positive) = 2·J / (1 + J), J the share of TP in those that are either
        "f1": _Measure(
            _share(2 * (said & positive), said.astype(int) + positive),
            sum(sizes),
            exact=lambda value: _f1_of_shares(*_all_or_none(either)(value)),
        ),
        # Of min(sizes) pairs that share no conversation all are won, or all are lost.
        "auc": _Measure(auc_statistic(scores, sizes[0]), sum(sizes), exact=_all_or_none(min(sizes))),
        "delta_netsat": _Measure(_mean_difference(scores, sizes[0]), sum(sizes)),
        "yield_rate": _measured_share(outside, everyone, needs_labels=False),
        "confident_accuracy": _measured_share(right & outside, outside, "every score is in the uncertainty window"),
    }
    metrics = _measured(measures, sizes, rng, resamples)
    return Assessment(n=sum(sizes), positives=sizes[0], negatives=sizes[1], **metrics)


def beyond(window: Window, scores: Floats, positive: Bools) -> Beyond:
    """What lies outside a window, and how often it is right there.

    Args:
        scores: NetSAT `[conversation]`.
        positive: Labels `[conversation]`.
    """
    over, under = window.over(scores), window.under(scores)
    hits = int((over & positive).sum()), int((under & ~positive).sum())
    beyond_it, sizes = "nothing is outside the window", (int(over.sum()), int(under.sum()))
    return Beyond(
        yield_rate=_exact(sum(sizes), len(scores), "no conversations"),
        accuracy=_exact(sum(hits), sum(sizes), beyond_it),
        positive=_exact(hits[0], sizes[0], f"{beyond_it} on this side"),
        negative=_exact(hits[1], sizes[1], f"{beyond_it} on this side"),
    )


def _exact(hits: int, n: int, empty: str) -> Metric:
    if not n:
        return Metric(None, None, None, 0, empty)
    low, high = share_interval(hits, n)
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
    first: Floats, second: Floats, positive: Bools, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Metric:
    """AUC of `first` less that of `second` on the same conversations, both measured on the same resamples."""
    order = _positives_first(positive)
    sizes = int(positive.sum()), int((~positive).sum())
    one, other = (auc_statistic(scores[order], sizes[0]) for scores in (first, second))
    measure = _Measure(lambda weights: one(weights) - other(weights), sum(sizes))
    return _measured({"difference": measure}, sizes, rng, resamples)["difference"]


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
    measures: Mapping[str, _Measure], sizes: tuple[int, int], rng: np.random.Generator, resamples: int
) -> dict[str, Metric]:
    if sum(sizes) == 0:
        return {name: Metric(None, None, None, 0, "no conversations") for name in measures}
    actual = np.ones((1, sum(sizes)))
    draws: dict[str, list[Floats]] = {name: [] for name in measures}
    for weights in _resampled(sizes, resamples, rng):
        for name, measure in measures.items():
            draws[name].append(measure.statistic(weights))
    return {
        name: _metric(measure, float(measure.statistic(actual)[0]), np.concatenate(draws[name]), sizes)
        for name, measure in measures.items()
    }


def _metric(measure: _Measure, value: float, draws: Floats, sizes: tuple[int, int]) -> Metric:
    if measure.needs_labels and 0 in sizes:
        return Metric(None, None, None, measure.n, f"only {'negative' if sizes[0] == 0 else 'positive'} conversations")
    if np.isnan(value):
        return Metric(None, None, None, measure.n, measure.empty)
    if (min(sizes) if measure.needs_labels else max(sizes)) < 2:
        return Metric(value, None, None, measure.n)
    if measure.exact and value in (0.0, 1.0):
        return Metric(value, *measure.exact(value), measure.n)
    low, high = np.quantile(draws[~np.isnan(draws)], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Metric(value, float(low), float(high), measure.n)


def _resampled(sizes: tuple[int, int], count: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Weights of bootstrap resamples `[resample, conversation]`, in blocks; each class keeps its size."""
    step = max(1, BLOCK // sum(sizes))
    for start in range(0, count, step):
        rows = min(step, count - start)
        yield np.hstack([_drawn(rows, size, rng) for size in sizes])


def _drawn(rows: int, size: int, rng: np.random.Generator) -> Floats:
    if size == 0:
        return np.zeros((rows, 0))
    picks = rng.integers(size, size=(rows, size)) + size * np.arange(rows)[:, None]
    return np.bincount(picks.ravel(), minlength=rows * size).reshape(rows, size).astype(float)


def _share(part: ArrayLike, whole: ArrayLike) -> Statistic:
    """The weighted sum of `part` over that of `whole`."""
    columns = np.stack([part, whole], axis=1).astype(float)

    def statistic(weights: Floats) -> Floats:
        sums = weights @ columns
        return _ratio(sums[:, 0], sums[:, 1])

    return statistic


def _measured_share(part: Bools, whole: Bools, empty: str = "", needs_labels: bool = True) -> _Measure:
    n = int(whole.sum())
    return _Measure(_share(part, whole), n, empty, needs_labels, _all_or_none(n))


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
