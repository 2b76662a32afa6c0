"""Figures of predicted distributions against people's answers, with 95 % intervals.

    errors         of the expected answer (RMSE), of the distribution (log-loss, Brier, smECE)
    correlations   of the expected answer with the given one (Pearson, Spearman, Kendall's tau-b), quadratic kappa

A figure that needs an order is undefined for a question whose answers have none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pollex.measures.arrays import Bools, Floats, Ints, numbers_of
from pollex.measures.correlations import kappa_statistic, kendall_statistic, pearson_statistic, spearman_statistic
from pollex.measures.intervals import RESAMPLES, Figure, Measure, mean_of, measured
from pollex.measures.reliability import SMECE_RESAMPLES, smece


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for one question, and people's answers to it.

    Attributes:
        proba: `[judgment, option]`, rows that sum to 1.
        answer: Index of the chosen option `[judgment]`.
        text: Which text each judgment is of `[judgment]`.
        values: Value of each option.
        ordinal: Whether the options are ordered as their values are.
    """

    proba: Floats
    answer: Ints
    text: Ints
    values: tuple[float, ...]
    ordinal: bool = True

    def __len__(self) -> int:
        return len(self.answer)

    @cached_property
    def expected(self) -> Floats:
        """Expected answer Σ p·value `[judgment]`."""
        return np.asarray(self.proba @ np.array(self.values))

    @cached_property
    def given(self) -> Floats:
        """Value of the chosen answer `[judgment]`."""
        return np.array(self.values)[self.answer]

    @cached_property
    def nearest(self) -> Ints:
        """Index of the option nearest to the expected answer `[judgment]`; the lower of two."""
        return np.asarray(np.abs(self.expected[:, None] - np.array(self.values)).argmin(axis=1), dtype=np.int64)

    def where(self, keep: Bools | Ints) -> Predictions:
        """Return those that `keep` picks."""
        return Predictions(self.proba[keep], self.answer[keep], self.text[keep], self.values, self.ordinal)


@dataclass(frozen=True)
class Quality:
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
    rmse: Figure
    pearson: Figure
    spearman: Figure
    kendall: Figure
    log_loss: Figure
    brier: Figure
    kappa: Figure
    smece: Figure
    smece_of: dict[float, Figure]


def assess(
    predictions: Predictions,
    rng: np.random.Generator | None = None,
    resamples: int = RESAMPLES,
    smece_resamples: int = SMECE_RESAMPLES,
    smooth: bool = True,
) -> Quality:
    """Measure predictions; what can't be measured is undefined, never an error.

    Args:
        rng: None: values without intervals.
        smece_resamples: As `resamples`, for smECE, which is slow.
        smooth: False: without smECE, whose package alone takes seconds to load.
    """
    quick = measured(figures_of(predictions), predictions.text, rng, resamples)
    texts = len(np.unique(predictions.text))
    if smooth:
        mean, each = smece(predictions.proba, predictions.answer, predictions.text, rng, smece_resamples)
    else:
        mean = Figure(None, n=len(predictions), undefined="not asked for", units=texts)
        each = [mean] * len(predictions.values)
    return Quality(
        n=len(predictions), texts=texts, smece=mean, smece_of=dict(zip(predictions.values, each, strict=True)), **quick
    )


def assess_each(
    predictions: Predictions,
    of: Sequence[Hashable] | npt.NDArray[np.generic],
    rng: np.random.Generator | None = None,
    resamples: int = RESAMPLES,
    smece_resamples: int = SMECE_RESAMPLES,
) -> dict[Hashable, Quality]:
    """Measure each judge, or each subgroup, by itself.

    Args:
        of: Whose each judgment is `[judgment]`: the judge's name, the system, the topic.
    """
    codes = numbers_of(of)
    return {
        label: assess(predictions.where(codes == code), rng, resamples, smece_resamples)
        for code, label in enumerate(dict.fromkeys(of))
    }


def log_losses(proba: Floats, answer: Ints) -> Floats:
    """Compute −log p of the given answer `[judgment]`, in nats; infinite at probability 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(proba[np.arange(len(answer)), answer]))


def entropy(proba: Floats) -> Floats:
    """Compute −Σ p log p in nats of distributions `[…, option]`; NaN stays NaN."""
    logs = np.log(proba, out=np.zeros_like(proba), where=proba > 0)
    return np.asarray(-(proba * logs).sum(axis=-1) + 0.0)  # no −0


def variance(proba: Floats, values: Sequence[float]) -> Floats:
    """Compute the variance of the answer's value `[row]` under distributions `[row, option]`."""
    worth = np.array(values)
    mean = proba @ worth
    return np.asarray((proba * (worth - mean[:, None]) ** 2).sum(axis=1))


def briers(proba: Floats, answer: Ints) -> Floats:
    """Compute Σ (p − 1[given])² over the options `[judgment]`. Source: Brier 1950."""
    return np.asarray(((proba - np.eye(proba.shape[1])[answer]) ** 2).sum(axis=1))


def platt_targets(answers: Ints, options: int) -> Floats:
    """Compute what a uniform prior expects of one more judgment each `[judgment, option]`.

    (n + 1)/(n + K) for the given answer, which was given n times, and 1/(n + K) for the K − 1 others. With two options
    these are Platt's (N₊ + 1)/(N₊ + 2) and 1/(N₋ + 2).

    Source: Platt 1999, "Probabilistic outputs for support vector machines".
    """
    counts = np.bincount(answers, minlength=options)[answers].astype(np.float64)
    targets = np.repeat(1 / (counts + options), options).reshape(len(answers), options)
    targets[np.arange(len(answers)), answers] = (counts + 1) / (counts + options)
    return targets


def difference(
    first: Predictions,
    second: Predictions,
    measure: str,
    rng: np.random.Generator | None = None,
    resamples: int = RESAMPLES,
) -> Figure:
    """Subtract a measure of `second` from that of `first`, on the same resamples.

    Args:
        measure: `rmse`, `pearson`, `spearman`, `kendall`, `log_loss`, `brier` or `kappa`.
    """
    one, other = (figures_of(predictions)[measure] for predictions in (first, second))
    figure = Measure(
        lambda weights: one.statistic(weights) - other.statistic(weights), one.undefined or other.undefined, one.empty
    )
    return measured({measure: figure}, first.text, rng, resamples)[measure]


def figures_of(predictions: Predictions) -> dict[str, Measure]:
    """Return each measure as a statistic of weights, and why it is undefined."""
    expected, given = predictions.expected, predictions.given
    unordered = "" if predictions.ordinal else "its answers have no order"
    constant = unordered or _constant(expected, given)
    losses = log_losses(predictions.proba, predictions.answer)
    impossible = int(np.isinf(losses).sum())
    rated, square = (predictions.nearest, predictions.answer), mean_of((expected - given) ** 2)
    return {
        "rmse": Measure(lambda weights: np.sqrt(square(weights)), unordered),
        "pearson": Measure(pearson_statistic(expected, given), constant),
        "spearman": Measure(spearman_statistic(expected, given), constant),
        "kendall": Measure(kendall_statistic(expected, given), constant),
        "log_loss": Measure(
            mean_of(losses), f"{impossible} of {len(losses)} given answers had probability 0" if impossible else ""
        ),
        "brier": Measure(mean_of(briers(predictions.proba, predictions.answer))),
        "kappa": Measure(kappa_statistic(*rated), unordered, "all predictions and answers are one and the same"),
    }


def _constant(expected: Floats, given: Floats) -> str:
    if len(given) < 2:
        return "fewer than two judgments"
    if np.ptp(given) == 0:
        return "all answers are alike"
    # Σ p·value of one and the same distribution differs by rounding.
    return "all predictions are alike" if np.ptp(expected) <= 1e-12 * np.abs(expected).max() else ""


NAMES = tuple(field.name for field in dataclasses.fields(Quality) if field.name not in ("n", "texts", "smece_of"))
"""The measures, in the order of a `Quality`."""
