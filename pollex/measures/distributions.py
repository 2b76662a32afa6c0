"""How well predicted distributions fit what people answered, each figure with its 95 % interval.

    errors         of the expected answer (RMSE), of the distribution (log-loss, Brier, smECE)
    correlations   of the expected answer with the given one (Pearson, Spearman, Kendall's tau-b), quadratic kappa

A figure that needs an order is undefined for a question whose answers have none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pollex.calibration.judgments import Judgments
from pollex.calibration.questionnaire import Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.intervals import BLOCK, RESAMPLES, Figure, Measured, Statistic, mean_of, measured
from pollex.measures.reliability import SMECE_RESAMPLES, smece

SUM_TOLERANCE = 1e-6
"""By so much a predicted distribution may miss a sum of 1."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """What was predicted of one question beside what was answered.

    Attributes:
        proba: `[judgment, option]`, rows that sum to 1.
        answer: Place of the option that was chosen `[judgment]`.
        text: Which text each judgment is of `[judgment]`.
        values: What each option is worth.
        ordinal: Whether the options are ordered as their values are.
    """

    proba: Floats
    answer: Ints
    text: Ints
    values: tuple[float, ...]
    ordinal: bool = True

    def __post_init__(self) -> None:
        """Refuses arrays that don't fit each other, and what is no distribution.

        Raises:
            WrongUse: Says which.
        """
        shape = (len(self.answer), len(self.values))
        if self.proba.shape != shape or len(self.text) != len(self.answer):
            raise WrongUse(
                f"predictions of shape {self.proba.shape} for {shape[0]} answers of {len(self.text)} texts",
                remedy=f"give one row a judgment and one column an option, {shape}",
            )
        strangers = (self.answer < 0) | (self.answer >= shape[1])
        if strangers.any():
            raise WrongUse(
                f"{int(strangers.sum())} answers are no places of the {shape[1]} options",
                where=f"judgment {int(np.argmax(strangers))}",
                remedy="count places from 0",
            )
        if shape[0] and not ((self.proba >= 0).all() and np.abs(self.proba.sum(axis=1) - 1).max() <= SUM_TOLERANCE):
            raise WrongUse("predictions that are no distributions", remedy="give rows that sum to 1")

    @classmethod
    def of(cls, proba: Floats, given: Judgments, scale: Scale) -> Predictions:
        """Beside judgments of one question, in their order."""
        return cls(proba, given.answer, given.row, scale.values, scale.ordinal)

    def __len__(self) -> int:
        return len(self.answer)

    @cached_property
    def expected(self) -> Floats:
        """Expected answer Σ p·value `[judgment]`."""
        return np.asarray(self.proba @ np.array(self.values))

    @cached_property
    def given(self) -> Floats:
        """What the chosen answer is worth `[judgment]`."""
        return np.array(self.values)[self.answer]

    @cached_property
    def nearest(self) -> Ints:
        """Place of the option nearest to the expected answer `[judgment]`; the lower one when two are as near."""
        return np.asarray(np.abs(self.expected[:, None] - np.array(self.values)).argmin(axis=1), dtype=np.int64)

    def where(self, keep: Bools | Ints) -> Predictions:
        """Those that `keep` picks."""
        return Predictions(self.proba[keep], self.answer[keep], self.text[keep], self.values, self.ordinal)


@dataclass(frozen=True)
class Assessment:
    """All figures of one set of predictions.

    Attributes:
        log_loss: Mean −log p of the given answer, in nats.
        brier: Mean Σ (p − 1[given])² over the options, 0 to 2.
        smece: Mean over the answers of each one's smoothed calibration error. A constant can have 0: read it beside
            the log-loss.
        kappa: Cohen's with quadratic weights, between the given answer and the option nearest to the expected one.
        smece_of: By the answer's value.
    """

    n: int
    texts: int
    rmse: Measured
    pearson: Measured
    spearman: Measured
    kendall: Measured
    log_loss: Measured
    brier: Measured
    kappa: Measured
    smece: Measured
    smece_of: dict[float, Measured]


def assess(
    predictions: Predictions,
    rng: np.random.Generator | None = None,
    resamples: int = RESAMPLES,
    smece_resamples: int = SMECE_RESAMPLES,
    smooth: bool = True,
) -> Assessment:
    """Measures predictions; whatever can't be measured is undefined, never an error.

    Args:
        rng: None: values without intervals.
        smece_resamples: As `resamples`, for smECE, which is slow.
        smooth: False: without smECE, whose package alone takes seconds to load.
    """
    quick = measured(_figures(predictions), predictions.text, rng, resamples)
    first = next(iter(quick.values()))
    if smooth:
        mean, each = smece(predictions.proba, predictions.answer, predictions.text, rng, smece_resamples)
    else:
        mean = Measured(None, None, None, first.n, first.texts, "not asked for")
        each = [mean] * len(predictions.values)
    return Assessment(
        n=first.n,
        texts=first.texts,
        smece=mean,
        smece_of=dict(zip(predictions.values, each, strict=True)),
        **quick,
    )


def assess_each(
    predictions: Predictions,
    of: Sequence[Hashable] | npt.NDArray[np.generic],
    rng: np.random.Generator | None = None,
    resamples: int = RESAMPLES,
    smece_resamples: int = SMECE_RESAMPLES,
    smooth: bool = True,
) -> dict[Hashable, Assessment]:
    """Measures each judge, or each subgroup, by itself.

    Args:
        of: Whose each judgment is `[judgment]`: the judge's name, the system, the topic.
    """
    if len(of) != len(predictions):
        raise WrongUse(f"{len(of)} labels for {len(predictions)} judgments", remedy="give one label a judgment")
    codes = np.array([{label: code for code, label in enumerate(dict.fromkeys(of))}[label] for label in of], int)
    return {
        label: assess(predictions.where(codes == code), rng, resamples, smece_resamples, smooth)
        for code, label in enumerate(dict.fromkeys(of))
    }


def log_losses(proba: Floats, answer: Ints) -> Floats:
    """−log p of the given answer `[judgment]`, in nats; infinite where it had probability 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(proba[np.arange(len(answer)), answer]))


def briers(proba: Floats, answer: Ints) -> Floats:
    """Σ (p − 1[given])² over the options `[judgment]`. Source: Brier 1950."""
    return np.asarray(((proba - np.eye(proba.shape[1])[answer]) ** 2).sum(axis=1))


def difference(
    first: Predictions,
    second: Predictions,
    measure: str,
    rng: np.random.Generator | None = None,
    resamples: int = RESAMPLES,
) -> Measured:
    """A measure of `first` less that of `second` on the same judgments, both on the same resamples.

    Args:
        measure: `rmse`, `pearson`, `spearman`, `kendall`, `log_loss`, `brier` or `kappa`.

    Raises:
        WrongUse: They are not of the same judgments.
    """
    same = np.array_equal(first.answer, second.answer) and np.array_equal(first.text, second.text)
    if not same or first.values != second.values:
        raise WrongUse("predictions of other judgments", remedy="compare two models on the same ones, in one order")
    one, other = (_figures(predictions)[measure] for predictions in (first, second))
    figure = Figure(
        lambda weights: one.statistic(weights) - other.statistic(weights), one.undefined or other.undefined, one.empty
    )
    return measured({measure: figure}, first.text, rng, resamples)[measure]


def averaged(
    runs: Sequence[Predictions],
    measures: Sequence[str],
    rng: np.random.Generator | None = None,
    resamples: int = RESAMPLES,
) -> dict[str, Measured]:
    """Mean of each measure over several predictions of the same judgments: splits, seeds.

    The interval is that of the mean, with every run on the same resamples of texts. It says how far other texts would
    move it; what splits and seeds do is another question.

    Args:
        runs: One at least.
        measures: As in `difference`.
    """
    each = [_figures(run) for run in runs]
    figures = {
        name: Figure(
            _mean([of[name].statistic for of in each]), next(filter(None, (of[name].undefined for of in each)), "")
        )
        for name in measures
    }
    return measured(figures, runs[0].text, rng, resamples)


def _mean(statistics: Sequence[Statistic]) -> Statistic:
    return lambda weights: np.mean([statistic(weights) for statistic in statistics], axis=0)


def _figures(predictions: Predictions) -> dict[str, Figure]:
    expected, given = predictions.expected, predictions.given
    unordered = "" if predictions.ordinal else "its answers have no order"
    constant = unordered or _constant(expected, given)
    losses = log_losses(predictions.proba, predictions.answer)
    impossible = int(np.isinf(losses).sum())
    rated = predictions.nearest, predictions.answer
    return {
        "rmse": Figure(_rmse((expected - given) ** 2), unordered),
        "pearson": Figure(pearson_statistic(expected, given), constant),
        "spearman": Figure(spearman_statistic(expected, given), constant),
        "kendall": Figure(kendall_statistic(expected, given), constant),
        "log_loss": Figure(
            mean_of(losses), f"{impossible} of {len(losses)} given answers had probability 0" if impossible else ""
        ),
        "brier": Figure(mean_of(briers(predictions.proba, predictions.answer))),
        "kappa": Figure(kappa_statistic(*rated), unordered, "all predictions and answers are one and the same"),
    }


def _rmse(squares: Floats) -> Statistic:
    mean = mean_of(squares)
    return lambda weights: np.sqrt(mean(weights))


def _constant(expected: Floats, given: Floats) -> str:
    """Why a correlation is undefined."""
    if len(given) < 2:
        return "fewer than two judgments"
    if np.ptp(given) == 0:
        return "all answers are alike"
    # Σ p·value of one and the same distribution differs by rounding.
    return "all predictions are alike" if np.ptp(expected) <= 1e-12 * np.abs(expected).max() else ""


NAMES = tuple(field.name for field in dataclasses.fields(Assessment) if field.name not in ("n", "texts", "smece_of"))
"""The measures, in the order of an `Assessment`."""

FLAT = 1e-12
"""A variance under this share of the whole data's is rounding."""


def pearson_statistic(x: Floats, y: Floats) -> Statistic:
    """Pearson's correlation of `[judgment]` with `[judgment]`."""
    # Centred first: raw moments of values far from 0 would cancel.
    a, b = x - x.mean() if len(x) else x, y - y.mean() if len(y) else y
    columns = np.stack([a, b, a * a, b * b, a * b], axis=1)
    floors = FLAT * (a * a).mean() if len(x) else 0.0, FLAT * (b * b).mean() if len(y) else 0.0

    def statistic(weights: Floats) -> Floats:
        moments = (weights @ columns / weights.sum(axis=1, keepdims=True)).T
        return _correlation(moments, floors)

    return statistic


def spearman_statistic(x: Floats, y: Floats) -> Statistic:
    """Spearman's correlation: Pearson's of the ranks, where equals share the mean of their ranks."""

    def of_tables(tables: Floats) -> Floats:
        ranks = _midranks(tables.sum(axis=2)), _midranks(tables.sum(axis=1))
        total = tables.sum(axis=(1, 2))
        a, b = ranks[0] - (total / 2)[:, None], ranks[1] - (total / 2)[:, None]
        moments = [
            np.zeros_like(total),
            np.zeros_like(total),
            np.einsum("rxy,rx->r", tables, a * a),
            np.einsum("rxy,ry->r", tables, b * b),
            np.einsum("rxy,rx,ry->r", tables, a, b, optimize=True),
        ]
        return _correlation(np.stack(moments), (0.0, 0.0))

    return _of_tables(of_tables, x, y)


def kendall_statistic(x: Floats, y: Floats) -> Statistic:
    """Kendall's tau-b: pairs in the same order less those in opposite order, over √(untied in x · untied in y)."""

    def of_tables(tables: Floats) -> Floats:
        # Weight of all cells of a lower row, by column; then of those in a lower, and in a higher column.
        above = tables.cumsum(axis=1) - tables
        lower = above.cumsum(axis=2) - above
        higher = above.sum(axis=2, keepdims=True) - lower - above
        agreement = (tables * (lower - higher)).sum(axis=(1, 2))
        total = tables.sum(axis=(1, 2))
        untied = [(total**2 - (tables.sum(axis=axis) ** 2).sum(axis=1)) / 2 for axis in (2, 1)]
        return _ratio(agreement, np.sqrt(untied[0] * untied[1]))

    return _of_tables(of_tables, x, y)


def kappa_statistic(x: Ints, y: Ints) -> Statistic:
    """Cohen's kappa with quadratic weights: 1 − E(x−y)² / E(x−y′)², with y′ drawn independently of x.

    Args:
        x: Places of options `[judgment]`.
        y: Likewise.
    """
    a, b = x.astype(float), y.astype(float)
    columns = np.stack([a, b, a * a, b * b, a * b], axis=1)

    def statistic(weights: Floats) -> Floats:
        a, b, aa, bb, ab = (weights @ columns / weights.sum(axis=1, keepdims=True)).T
        chance = aa + bb - 2 * a * b
        return 1 - _ratio(aa + bb - 2 * ab, np.where(chance > FLAT, chance, 0.0))

    return statistic


def _of_tables(of_tables: Callable[[Floats], Floats], x: npt.NDArray[Any], y: npt.NDArray[Any]) -> Statistic:
    """A statistic of contingency tables `[resample, x value, y value]` as one of weights, in blocks that fit."""
    (xs, row), (ys, column) = np.unique(x, return_inverse=True), np.unique(y, return_inverse=True)
    shape = len(xs), len(ys)
    cells = row * shape[1] + column
    step = max(1, BLOCK // max(1, shape[0] * shape[1]))

    def table(weights: Floats) -> Floats:
        size = shape[0] * shape[1]
        flat = (np.arange(len(weights))[:, None] * size + cells).ravel()
        return np.bincount(flat, weights.ravel(), len(weights) * size).astype(float).reshape(-1, *shape)

    def statistic(weights: Floats) -> Floats:
        blocks = [of_tables(table(weights[start : start + step])) for start in range(0, len(weights), step)]
        return np.concatenate(blocks)

    return statistic


def _midranks(counts: Floats) -> Floats:
    """Mean rank of the copies of each value, less ½ `[resample, value]`."""
    return np.asarray(counts.cumsum(axis=1) - counts / 2)


def _correlation(moments: Floats, floors: tuple[float, float]) -> Floats:
    """From the weighted means of a, b, a², b² and ab `[5, resample]`; NaN where a variance is under its floor."""
    a, b, aa, bb, ab = moments
    spread = aa - a * a, bb - b * b
    varies = (spread[0] > floors[0]) & (spread[1] > floors[1])
    found = _ratio(ab - a * b, np.sqrt(np.where(varies, spread[0] * spread[1], 0.0)))
    return np.clip(found, -1.0, 1.0)  # rounding


def _ratio(part: Floats, whole: Floats) -> Floats:
    ratios: Floats = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return ratios
