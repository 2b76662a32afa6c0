"""Figures with their 95 % bootstrap intervals over texts, and how many labels stand behind a word.

Sources: Efron and Tibshirani 1993, chapter 13, doi:10.1007/978-1-4899-4541-9, for percentile intervals; Hesterberg
2015, doi:10.1080/00031305.2015.1089789, for drawing them out where texts are few.

Texts are resampled, each with all its judgments: two judgments of one text are no two independent observations. A
resample is its weights, how often each judgment is in it, so that most figures of all resamples come from a few matrix
products. Inside this module NaN stands for a figure that has no value; a `Measured` never holds one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pollex.measures.arrays import Floats, Ints

RESAMPLES = 2000
LEVEL = 0.95
BLOCK = 1 << 19
"""Weights held at once: 4 MB."""

FEWEST = 5
"""Texts that an interval takes. Of fewer there are so few different resamples that it would be much too narrow: of two
it would miss the truth every other time."""

ENOUGH = 50
"""Labels from which on probabilities may be called calibrated."""

Statistic = Callable[[Floats], Floats]
"""Weights `[resample, judgment]` to figures `[resample]`; NaN where there is none."""


@dataclass(frozen=True)
class Measured:
    """A figure with its interval.

    Attributes:
        value: None when it is undefined.
        low: Lower end of the 95 % interval; None when there is no value, when there are fewer than `FEWEST` texts, and
            when no interval was asked for.
        high: Upper end.
        n: Judgments that it rests on.
        texts: Texts that these are of.
        undefined: Why there is no value; empty when there is one.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    texts: int
    undefined: str = ""


@dataclass(frozen=True)
class Figure:
    """A statistic to be measured.

    Attributes:
        undefined: Why it has no value on the data at hand; empty: it may have one.
        empty: Why, should the statistic turn out NaN.
    """

    statistic: Statistic
    undefined: str = ""
    empty: str = "it has no value on these judgments"


@dataclass(frozen=True)
class Support:
    """Whether so many labels are enough to call probabilities calibrated.

    Attributes:
        labels: How many there are.
        missing: How many more are needed.
    """

    labels: int
    missing: int

    @property
    def enough(self) -> bool:
        """Whether the word may be used."""
        return self.missing == 0

    def __str__(self) -> str:
        if self.enough:
            return f"calibrated on {self.labels} labels"
        verb = "is" if self.missing == 1 else "are"
        return f"not yet calibrated: {self.labels} of {ENOUGH} labels, {self.missing} {verb} missing"


def support(labels: int) -> Support:
    """What so many labels support."""
    return Support(labels, max(0, ENOUGH - labels))


def measured(
    figures: Mapping[str, Figure],
    text: Ints,
    rng: np.random.Generator | None = None,
    resamples: int = RESAMPLES,
) -> dict[str, Measured]:
    """Measures figures, all on the same resamples.

    Args:
        text: Which text each judgment is of `[judgment]`.
        rng: None: values without intervals.
    """
    if not len(text):
        return {name: Measured(None, None, None, 0, 0, "no judgments") for name in figures}
    n, codes = len(text), codes_of_texts(text)
    defined = {name: figure for name, figure in figures.items() if not figure.undefined}
    values = {name: float(figure.statistic(np.ones((1, n)))[0]) for name, figure in defined.items()}
    draws: dict[str, list[Floats]] = {name: [] for name in defined}
    for weights in resampled(codes, resamples, rng):
        for name, figure in defined.items():
            draws[name].append(figure.statistic(weights))
    texts = int(codes.max()) + 1
    return {
        name: with_interval(values[name], np.concatenate([[], *draws[name]]), n, texts, figure.empty)
        if name in defined
        else Measured(None, None, None, n, texts, figure.undefined)
        for name, figure in figures.items()
    }


def codes_of_texts(text: Ints) -> Ints:
    """Numbers from 0 on, without gaps, for texts `[judgment]`."""
    return np.asarray(np.unique(text, return_inverse=True)[1], dtype=np.int64)


def resampled(codes: Ints, count: int, rng: np.random.Generator | None) -> Iterator[Floats]:
    """Weights of resamples `[resample, judgment]`, in blocks; none without a generator or with too few texts.

    Args:
        codes: From `codes_of_texts`.
    """
    texts = int(codes.max()) + 1
    if rng is None or texts < FEWEST:
        return
    step = max(1, BLOCK // len(codes))
    for start in range(0, count, step):
        rows = min(step, count - start)
        picks = rng.integers(texts, size=(rows, texts)) + texts * np.arange(rows)[:, None]
        yield np.bincount(picks.ravel(), minlength=rows * texts).reshape(rows, texts).astype(float)[:, codes]


def mean_of(values: Floats) -> Statistic:
    """The weighted mean of values `[judgment]`."""
    return lambda weights: np.asarray(weights @ values / weights.sum(axis=1))


def with_interval(
    value: float,
    draws: Floats,
    n: int,
    texts: int,
    empty: str = "",
    kind: Literal["percentile", "basic"] = "percentile",
) -> Measured:
    """A value with the interval that its resamples `[resample]` give.

    Args:
        empty: Why there is no value, when it is NaN.
        kind: `basic`: the percentiles mirrored at the value and cut at 0, for an error that resampling drives up.
            Where it drives up nearly every resample, these ends would both be under the value: the interval is drawn
            out to it, which can only make it cover more.
    """
    if np.isnan(value):
        return Measured(None, None, None, n, texts, empty)
    found = draws[~np.isnan(draws)]
    if len(found) < 2:
        return Measured(value, None, None, n, texts)
    low, high = ends(found, texts)
    if kind == "basic":
        low, high = max(0.0, min(value, 2 * value - high)), max(value, 2 * value - low)
    return Measured(value, low, high, n, texts)


def ends(draws: Floats, texts: int) -> tuple[float, float]:
    """Both ends of the 95 % interval that resamples `[resample]` of so many texts give, two at least.

    Plain percentiles are those of a normal distribution whose variance is known: of 5 texts they hold a mean 83 times
    of 100, of 10 texts 89 times. Further out by as much as Student's t is, they hold it 92 and 95 times.
    """
    from scipy.special import ndtr, stdtrit  # most that measure nothing need no SciPy

    # A resample of n texts has but (n − 1)/n of the variance.
    beyond = float(ndtr(-np.sqrt(texts / (texts - 1)) * stdtrit(texts - 1, (1 + LEVEL) / 2)))
    low, high = np.quantile(draws, [beyond, 1 - beyond]).tolist()
    return low, high


def share_interval(hits: float, n: int, level: float = 0.95, *, units: int | None = None) -> tuple[float, float]:
    """Clopper–Pearson interval of a share: at least `level` whatever the share is.

    Args:
        units: How many the n are if those that go together count as one, as if they had but one thing to say, which
            gives the widest interval; None: each is alone.

    Source: Clopper, Pearson 1934, 10.1093/biomet/26.4.404.
    """
    from scipy.stats import beta  # a second to import

    if units is not None and n:
        hits, n = hits * units / n, units
    tail = (1 - level) / 2
    low = float(beta.ppf(tail, hits, n - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - tail, hits + 1, n - hits)) if hits < n else 1.0
    return low, high
