"""Probability of a positive conversation given NetSAT: a logistic curve of one variable.

Sources: Platt 1999, "Probabilistic outputs for support vector machines", for the targets; Lin, Lin and Weng 2007,
doi:10.1007/s10994-007-5018-6, for Newton's method with backtracking.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pollex.measures.arrays import Bools, Floats
from pollex.measures.classification import require_both_classes
from pollex.measures.distributions import platt_targets
from pollex.selection.losses import RESOLUTION

STEPS = 100
HALVINGS = 30


@dataclass(frozen=True)
class Calibration:
    """`P(positive | score) = 1 / (1 + exp(−(intercept + slope·score)))`."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    slope: float
    intercept: float

    def probability(self, scores: Floats) -> Floats:
        """Compute probabilities `[conversation]` of scores `[conversation]`."""
        return logistic(self.intercept + self.slope * np.asarray(scores, float))


def fit_calibration(scores: Floats, positive: Bools) -> Calibration:
    """Fit the curve by maximum likelihood with Platt's targets, which keep it finite.

    Args:
        scores: NetSAT of training conversations, by rubrics chosen without them `[conversation]`.
        positive: Their labels `[conversation]`.

    Raises:
        BadLabels: All labels are alike.
    """
    require_both_classes(positive)
    targets = platt_targets(positive.astype(np.int64), 2)[:, 1]
    mean, deviation = float(np.mean(scores)), float(np.std(scores))
    if deviation <= RESOLUTION:
        rate = float(targets.mean())
        return Calibration(0.0, float(np.log(rate / (1 - rate))))
    slope, intercept = _newton((scores - mean) / deviation, targets)
    return Calibration(slope / deviation, intercept - slope * mean / deviation)


def _newton(z: Floats, targets: Floats) -> tuple[float, float]:
    design = np.stack([z, np.ones_like(z)], axis=1)
    weights: Floats = np.zeros(2)
    for _ in range(STEPS):
        p = logistic(design @ weights)
        gradient = design.T @ (p - targets)
        if np.abs(gradient).max() <= RESOLUTION * len(z):
            break
        # A ridge far below any real curvature keeps the step finite where all probabilities are at 0 or 1.
        hessian = (design.T * (p * (1 - p))) @ design + 1e-12 * np.eye(2)
        step = np.linalg.solve(hessian, gradient).astype(float)
        weights = _downhill(design, targets, weights, step)
    return float(weights[0]), float(weights[1])


def _downhill(design: Floats, targets: Floats, weights: Floats, step: Floats) -> Floats:
    start = _cross_entropy(design @ weights, targets)
    sizes = 0.5 ** np.arange(HALVINGS)
    tried = (weights - size * step for size in sizes)
    return next((new for new in tried if _cross_entropy(design @ new, targets) < start), weights)


def _cross_entropy(logits: Floats, targets: Floats) -> float:
    return float(np.sum(np.logaddexp(0.0, logits) - targets * logits))


def logistic(logits: Floats) -> Floats:
    """Convert log-odds to probabilities, without importing SciPy."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -logits)))
