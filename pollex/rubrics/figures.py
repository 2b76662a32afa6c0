"""Figures of how true the probabilities of a thumb up are."""

from __future__ import annotations

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.distributions import log_losses
from pollex.measures.intervals import Measure, mean_of, measured
from pollex.measures.reliability import smece
from pollex.rubrics.records import ProbabilityFigures

SMECE_RESAMPLES = 100
"""A second."""


def probability_figures(
    probability: Floats,
    positive: Bools,
    share: float,
    rng: np.random.Generator,
    together: Ints,
    *,
    smooth: bool = False,
) -> ProbabilityFigures:
    """Measure how true probabilities are, beside the share of positives that training had.

    Args:
        probability: Of positive `[conversation]`.
        positive: Labels `[conversation]`.
        share: Of positive training conversations.
        together: The block of each conversation; see `conversations.splits.block_ids`.
        smooth: Whether to measure smECE, too: the package behind it takes seconds to import.
    """
    proba, thumb = np.stack([1 - probability, probability], axis=1), positive.astype(np.int64)
    losses, constant = log_losses(proba, thumb), log_losses(np.full_like(proba, [1 - share, share]), thumb)
    impossible = f"{n} given thumbs had probability 0" if (n := int(np.isinf(losses).sum())) else ""
    wanted = {
        "log_loss": Measure(mean_of(losses), impossible),
        "brier": Measure(mean_of(np.square(probability - positive))),
        "share_log_loss": Measure(mean_of(constant)),
        "share_brier": Measure(mean_of(np.square(share - positive))),
        "gain": Measure(mean_of(constant - losses), impossible),
    }
    found = measured(wanted, together, rng)
    if smooth:
        found["smece"] = smece(proba, thumb, together, rng, SMECE_RESAMPLES)[0]
    return ProbabilityFigures(n=len(positive), **found)
