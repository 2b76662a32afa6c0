"""A normal distribution learnt from rows with gaps, and what it expects in the gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from pollex.calibration.questionnaire import Bools, Floats, Ints

ROUNDS = 25
"""Of expectation-maximisation; with few gaps it stands still after five."""


@dataclass(frozen=True, eq=False)
class Filled:
    """Rows without gaps.

    Attributes:
        rows: With expected values in the gaps `[row, column]`.
        pattern: Which gaps each had, a place in `unsure` `[row]`.
        unsure: Covariance of what was filled in, 0 for what was there `[pattern, column, column]`.
    """

    rows: Floats
    pattern: Ints
    unsure: Floats

    def variance(self, weights: Floats) -> Floats:
        """Variance of the weighted sum of each row's columns that its gaps leave `[row]`.

        Args:
            weights: `[row, column]`.
        """
        out = np.zeros(len(self.rows))
        for number, covariance in enumerate(self.unsure):
            members = self.pattern == number
            out[members] = ((weights[members] @ covariance) * weights[members]).sum(axis=1)
        return out


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Mean `[column]` and covariance `[column, column]`."""

    mean: Floats
    covariance: Floats

    @classmethod
    def learnt(cls, rows: Floats, shrinkage: float = 5.0) -> Self:
        """Learns from standardised rows `[row, column]`, NaN where missing, by expectation-maximisation.

        Source: Little & Rubin 2002, "Statistical Analysis with Missing Data", section 11.2. The covariance is drawn to
        the identity as if that had been seen in `shrinkage` rows more.
        """
        size = rows.shape[1]
        found = cls(np.zeros(size), np.eye(size))
        for _ in range(ROUNDS if np.isnan(rows).any() else 1):
            full = found.filled(rows)
            mean = full.rows.mean(axis=0)
            away = full.rows - mean
            unsure = np.tensordot(np.bincount(full.pattern, minlength=len(full.unsure)), full.unsure, axes=1)
            seen = away.T @ away + unsure
            found = cls(mean, (seen + shrinkage * np.eye(size)) / (len(rows) + shrinkage))
        return found

    def filled(self, rows: Floats) -> Filled:
        """Rows `[row, column]` with what is expected in the gaps given what is there. Rows of a pattern go together."""
        gaps = np.isnan(rows)
        # Eight columns a byte: to sort rows is slow, and the slower the more columns they have.
        _, first, which = np.unique(np.packbits(gaps, axis=1), axis=0, return_index=True, return_inverse=True)
        out = rows.copy()
        unsure = np.zeros((len(first), rows.shape[1], rows.shape[1]))
        for number, gap in enumerate(gaps[first]):
            if gap.any():
                members = np.flatnonzero(which == number)
                weights, unsure[number][np.ix_(gap, gap)] = self._conditional(gap)
                there = rows[np.ix_(members, ~gap)] - self.mean[~gap]
                out[np.ix_(members, gap)] = self.mean[gap] + there @ weights
        return Filled(out, which.ravel().astype(np.int64), unsure)

    def _conditional(self, gap: Bools) -> tuple[Floats, Floats]:
        """Weights of what is there `[there, missing]`, and the covariance that is left `[missing, missing]`."""
        between = self.covariance[np.ix_(~gap, gap)]
        weights: Floats = np.linalg.solve(self.covariance[np.ix_(~gap, ~gap)], between).astype(np.float64)
        return weights, self.covariance[np.ix_(gap, gap)] - between.T @ weights
