"""Features of answer distributions: standardized expected scores, with missing answers imputed.

A question that is not ordinal enters by the probabilities of its options: its values mean nothing.
Of two options the first says all; of more, each has its column, though one could be worked out from
the others: without one of them, shrinkage would depend on the options' order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import WrongUse
from pollex.measures.arrays import Bools, Floats, Ints

MIN_COLUMN_DEVIATION = 1e-3
"""A column whose standard deviation is less, a score's as a share of its scale, is left out: it says nothing."""

MIN_MASS_COLUMN_DEVIATION = 5e-3
"""Likewise of masses. Those of a table whose probabilities were rounded differ, too, but in nothing that another table
repeats: standardized, they would outweigh everything else there."""

MAX_STANDARD_SCORE = 10.0
"""Standard deviations from the mean that a text can be at most: nothing was learned about what lies beyond."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """The features of answer distributions, fitted on training rows.

    Attributes:
        questionnaire: What X is about.
        varying: Which columns vary, of all that there could be `[column]`.
        gaussian: Of the columns that can be missing, standardized by the training rows' mean and
            spread.
        mean: Of the varying columns `[input]`.
        spread: Their standard deviations `[input]`.
    """

    questionnaire: Questionnaire
    varying: Floats
    mean: Floats
    spread: Floats
    gaussian: FittedGaussian

    @property
    def width(self) -> int:
        """Number of inputs."""
        return len(self.mean)

    def of(self, X: Floats) -> ImputedRows:
        """Return inputs `[row, input]`; a missing answer is what is expected given the others."""
        columns, absent = _compute_feature_columns(X, self.questionnaire)
        varying = self.varying.astype(bool)
        return self.gaussian.filled(
            _standardize_kept_columns(
                columns,
                absent,
                varying,
                self.mean,
                self.spread,
            )
        )

    def names(self) -> tuple[str, ...]:
        """Return the question of each input `[input]`."""
        every = _list_question_of_each_column(self.questionnaire)
        return tuple(name for name, varies in zip(every, self.varying, strict=True) if varies)

    def arrays(self) -> dict[str, Any]:
        """Return what was learned, by name."""
        standardization = {
            "kept": self.varying,
            "mean": self.mean,
            "spread": self.spread,
        }
        return standardization | {
            "gaussian_mean": self.gaussian.mean,
            "gaussian_covariance": self.gaussian.covariance,
        }


def compute_column_means_and_deviations(columns: Floats) -> tuple[Floats, Floats]:
    """Compute mean and standard deviation of each column `[column]`; NaN is missing."""
    counts = np.maximum((~np.isnan(columns)).sum(axis=0), 1)
    mean = np.nansum(columns, axis=0) / counts
    return mean, np.sqrt(np.nansum((columns - mean) ** 2, axis=0) / counts)


def fit_model_inputs(
    X: Floats,
    questionnaire: Questionnaire,
    only: Sequence[str] | None = None,
) -> Inputs:
    """Learn means, spreads and what goes with what from training rows.

    Args:
        only: Ids of the questions that are looked at; None: all that are asked.
    """
    # which columns vary enough, and belong to a question that is looked at
    columns, absent = _compute_feature_columns(X, questionnaire)
    mean, spread = compute_column_means_and_deviations(np.where(absent, np.nan, columns))
    selected = []
    for name in _list_question_of_each_column(questionnaire):
        selected.append(only is None or name in only)

    # the least spread of each column: of its scores, of its mass, of its indicator
    scales = questionnaire.asked
    ranges = []
    for scale in scales:
        if scale.ordinal:
            score_range = float(np.ptp(scale.values))
        else:
            score_range = 1.0

        ranges.extend([score_range] * _count_columns_of_scale(scale))

    masses = np.full(len(scales), MIN_MASS_COLUMN_DEVIATION)
    indicators = np.full(len(scales), MIN_COLUMN_DEVIATION)
    least = np.concatenate([MIN_COLUMN_DEVIATION * np.array(ranges), masses, indicators])
    varying = (spread > least) & np.array(selected, dtype=bool)
    # what goes with what is learned from the standardized columns
    standard = _standardize_kept_columns(
        columns,
        absent,
        varying,
        mean[varying],
        spread[varying],
    )

    return Inputs(
        questionnaire,
        varying.astype(np.float64),
        mean[varying],
        spread[varying],
        FittedGaussian.learned(standard),
    )


def restore_model_inputs(questionnaire: Questionnaire, arrays: dict[str, Any]) -> Inputs:
    """Restore inputs from the result of `Inputs.arrays`.

    Raises:
        ValueError: The arrays were changed.
        WrongUse: The answers enter otherwise here, as those to class questions did before all their
            options entered.
    """
    columns_then = len(arrays["kept"])
    columns_now = len(_list_question_of_each_column(questionnaire))
    if columns_then != columns_now:
        raise WrongUse(
            f"it was fitted to answers in {columns_then} columns, and its questions have "
            f"{columns_now} here",
            hint="use the pollex that fitted it",
        )

    # each column was kept because it varies; other spreads give figures that are none
    if not np.all(arrays["spread"] > 0):
        raise ValueError("a column without spread")

    gaussian = FittedGaussian(arrays["gaussian_mean"], arrays["gaussian_covariance"])
    return Inputs(
        questionnaire,
        arrays["kept"],
        arrays["mean"],
        arrays["spread"],
        gaussian,
    )


def _compute_feature_columns(X: Floats, questionnaire: Questionnaire) -> tuple[Floats, Bools]:
    """Compute all possible columns, and a mask of inapplicable ones `[row, column]`."""
    if not questionnaire.asked:
        return np.zeros((len(X), 0)), np.zeros((len(X), 0), dtype=bool)

    # of each question its expected answer, or the shares of its options
    mass = questionnaire.mass(X)
    expected = questionnaire.expected(X)
    parts = []
    blocks = questionnaire.blocks.values()
    for place, (scale, block) in enumerate(zip(questionnaire.asked, blocks, strict=True)):
        if scale.ordinal:
            parts.append(expected[:, [place]])
            continue
        probabilities = X[:, block]
        z = mass[:, [place]]
        shares = np.divide(
            probabilities,
            z,
            out=np.zeros_like(probabilities),
            where=z != 0,
        )
        parts.append(shares[:, : _count_columns_of_scale(scale)])

    # NaN != 0, so that what is missing stays NaN; what does not apply has an indicator, and stands
    # at the mean
    indicator = np.where(np.isnan(mass), np.nan, mass == 0)
    # a question that does not apply makes its columns and its mass absent, never its indicator
    places = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    nowhere = mass == 0
    columns = np.concatenate([*parts, mass, indicator], axis=1)
    return columns, np.concatenate([nowhere[:, places], nowhere, np.zeros_like(nowhere)], axis=1)


def _standardize_kept_columns(
    columns: Floats,
    absent: Bools,
    varying: Bools,
    mean: Floats,
    spread: Floats,
) -> Floats:
    """Kept columns, standardized; 0 where they don't apply."""
    standard = np.clip(
        (columns[:, varying] - mean) / spread, -MAX_STANDARD_SCORE, MAX_STANDARD_SCORE
    )
    return np.asarray(np.where(absent[:, varying], 0.0, standard))


def _list_question_of_each_column(questionnaire: Questionnaire) -> Sequence[str]:
    scales = questionnaire.asked
    scores: list[str] = []
    for scale in scales:
        scores.extend([scale.question] * _count_columns_of_scale(scale))

    # the columns of scores, then one of mass and one indicator for each question
    questions = [scale.question for scale in scales]
    return [*scores, *questions, *questions]


def _count_columns_of_scale(scale: Scale) -> int:
    if scale.ordinal or len(scale.values) == 2:
        return 1
    return len(scale.values)


IMPUTATION_EM_ITERATIONS = 25
"""Of expectation-maximisation; with few gaps it stands still after five."""


@dataclass(frozen=True, eq=False)
class ImputedRows:
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
        """Compute the variance of each row's weighted sum due to its gaps `[row]`.

        Args:
            weights: `[row, column]`.
        """
        out = np.zeros(len(self.rows))
        # rows with the same gaps share a covariance
        for number, covariance in enumerate(self.unsure):
            members = self.pattern == number
            out[members] = ((weights[members] @ covariance) * weights[members]).sum(axis=1)
        return out


@dataclass(frozen=True, eq=False)
class FittedGaussian:
    """Mean `[column]` and covariance `[column, column]`."""

    mean: Floats
    covariance: Floats

    @classmethod
    def learned(cls, rows: Floats, shrinkage: float = 5.0) -> Self:
        """Learn from standardized rows `[row, column]`, NaN where missing, by expectation-maximisation.

        Source: Little & Rubin 2002, "Statistical Analysis with Missing Data", section 11.2. The
        covariance is drawn to the identity as if that had been seen in `shrinkage` rows more.
        """
        size = rows.shape[1]
        gaussian = cls(np.zeros(size), np.eye(size))
        # without gaps one round is exact
        for _ in range(IMPUTATION_EM_ITERATIONS if np.isnan(rows).any() else 1):
            full = gaussian.filled(rows)
            mean = full.rows.mean(axis=0)
            away = full.rows - mean
            # covariance of what was filled in, over all rows
            rows_of_pattern = np.bincount(full.pattern, minlength=len(full.unsure))
            unsure = np.tensordot(rows_of_pattern, full.unsure, axes=1)
            scatter = away.T @ away + unsure
            covariance = (scatter + shrinkage * np.eye(size)) / (len(rows) + shrinkage)
            gaussian = cls(mean, covariance)

        return gaussian

    def filled(self, rows: Floats) -> ImputedRows:
        """Fill gaps in rows `[row, column]` with conditional expectations, by pattern of gaps."""
        gaps = np.isnan(rows)
        # Eight columns a byte: to sort rows is slow, and the slower the more columns they have.
        _, first, which = np.unique(
            np.packbits(gaps, axis=1),
            axis=0,
            return_index=True,
            return_inverse=True,
        )
        out = rows.copy()
        unsure = np.zeros((len(first), rows.shape[1], rows.shape[1]))
        for number, gap in enumerate(gaps[first]):
            if not gap.any():
                continue
            # the conditional normal distribution of the gaps, given what is there
            members = np.flatnonzero(which == number)
            between = self.covariance[np.ix_(~gap, gap)]
            weights = np.linalg.solve(self.covariance[np.ix_(~gap, ~gap)], between)
            unsure[number][np.ix_(gap, gap)] = (
                self.covariance[np.ix_(gap, gap)] - between.T @ weights
            )
            there = rows[np.ix_(members, ~gap)] - self.mean[~gap]
            out[np.ix_(members, gap)] = self.mean[gap] + there @ weights

        return ImputedRows(out, which.ravel().astype(np.int64), unsure)
