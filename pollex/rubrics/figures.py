"""From the metrics of `selection` and `calibration` to the figures of a rubric set."""

from __future__ import annotations

import numpy as np

from pollex.measures.classification import Assessment, Metric
from pollex.measures.intervals import Figure as Wanted
from pollex.measures.intervals import Measured, mean_of, measured
from pollex.measures.reliability import smece
from pollex.rubrics.records import Figure, Figures, ProbabilityFigures
from pollex.selection.losses import Bools, Floats, Ints

SMECE_RESAMPLES = 100
"""Two seconds."""


def figure(metric: Metric) -> Figure:
    """A metric as a figure."""
    return Figure(value=metric.value, low=metric.low, high=metric.high, n=metric.n, undefined=metric.undefined)


def figures(found: Assessment) -> Figures:
    """All metrics of one set of conversations."""
    return Figures(
        n=found.n,
        positives=found.positives,
        negatives=found.negatives,
        auc=figure(found.auc),
        accuracy=figure(found.accuracy),
        precision=figure(found.precision),
        recall=figure(found.recall),
        f1=figure(found.f1),
        delta_netsat=figure(found.delta_netsat),
        yield_at_90=figure(found.yield_rate),
        confident_accuracy=figure(found.confident_accuracy),
    )


def probability_figures(
    probability: Floats,
    positive: Bools,
    share: float,
    rng: np.random.Generator,
    together: Ints,
    *,
    smooth: bool = False,
) -> ProbabilityFigures:
    """How true probabilities are, beside the share of positives that training had.

    Args:
        probability: Of positive `[conversation]`.
        positive: Labels `[conversation]`.
        share: Of positive training conversations.
        together: The block of each conversation; see `conversations.splits.together`.
        smooth: Measures smECE, too: the package behind it takes seconds to import.
    """
    losses, constant = log_losses(probability, positive), log_losses(np.full(len(positive), share), positive)
    impossible = f"{n} given thumbs had probability 0" if (n := int(np.isinf(losses).sum())) else ""
    wanted = {
        "log_loss": Wanted(mean_of(losses), impossible),
        "brier": Wanted(mean_of(np.asarray((probability - positive) ** 2, dtype=np.float64))),
        "share_log_loss": Wanted(mean_of(constant)),
        "share_brier": Wanted(mean_of(np.asarray((share - positive) ** 2, dtype=np.float64))),
        "gain": Wanted(mean_of(constant - losses), impossible),
    }
    found = {name: measured_figure(one) for name, one in measured(wanted, together, rng).items()}
    if smooth:
        both = np.stack([1 - probability, probability], axis=1)
        found["smece"] = measured_figure(smece(both, positive.astype(np.int64), together, rng, SMECE_RESAMPLES)[0])
    return ProbabilityFigures(n=len(positive), **found)


def log_losses(probability: Floats, positive: Bools) -> Floats:
    """−log p of the given thumb `[conversation]`, in nats; infinite where it had probability 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(np.where(positive, probability, 1 - probability)))


def measured_figure(one: Measured) -> Figure:
    """A measured figure as a rubric set's."""
    return Figure(value=one.value, low=one.low, high=one.high, n=one.n, undefined=one.undefined)
