"""Choice of labels to ask for, by the expected reduction of predictive variance.

A text that nobody can predict is worth little if it is like no other, and two texts that are alike
are worth little more than one. So a label is worth by how much the variance of the predicted
answers, mean over all texts, would fall with it in a logistic model on the texts' vectors:
V-optimal design. After each pick the variances are those with that label, whatever it will be, so
that a list spreads over the texts without being told to.

With p the predicted probability, w = p(1−p) and z a text's vector with 1 and its judge in front, a
label adds w·z·zᵀ to the precision of the weights, and the variance of a predicted probability is
w²·zᵀCz, by the delta method. Source of the design: Chaloner & Verdinelli 1995, sections 2 and 4,
doi:10.1214/ss/1177009939; of choosing texts by it: Yu, Bi & Tresp 2006,
doi:10.1145/1143844.1143980. An answer with more options than two counts by its variance, as a share
of the square of its range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pollex.calibration.features import compute_column_means_and_deviations
from pollex.calibration.questionnaire import Questionnaire
from pollex.measures.arrays import Bools, Floats, Ints

PRIOR_LOG_ODDS_DEVIATION = 3.0
"""Standard deviation that the log-odds of a typical text have before any label, by each part of its vector."""

MAX_STANDARD_SCORE = 3.0
"""Vectors are cut off at so many standard deviations: an odd text is not worth more for being odder."""

EMBEDDING_COMPONENTS = 10
"""Principal components of embeddings that tell texts apart."""

INTERCEPT_PRIOR_PRECISION = 0.1
"""Prior precision of the share of positive answers."""

JUDGE_INTERCEPT_PRIOR_PRECISION = 2.0
"""Prior precision of a judge's own intercept, as in `models.ordinal`."""


@dataclass(frozen=True, eq=False)
class LabelQueries:
    """Labels to ask for, the most informative first.

    Attributes:
        row: Texts `[pick]`.
        judge: Whom to ask `[pick]`: a column of `doubt`.
        fall: Reduction of the mean variance of the predicted answers by each `[pick]`; earlier
            picks count as labeled.
    """

    row: Ints
    judge: Ints
    fall: Floats

    def __len__(self) -> int:
        return len(self.row)


def make_vectors_for_choosing_labels(columns: Floats, embeddings: Floats | None = None) -> Floats:
    """Make vectors of texts `[row, column + direction]` from predictors and embeddings.

    Args:
        columns: Predictors `[row, column]`, such as expected answers; NaN is missing, and counts as
            average.
        embeddings: Of the texts `[row, width]`; None: there are none.
    """
    # predictors and embeddings each share one prior standard deviation between their columns
    parts = [_standardize_columns(np.asarray(columns, dtype=np.float64))]
    if embeddings is not None:
        parts.append(_project_on_principal_components(np.asarray(embeddings, dtype=np.float64)))

    return np.concatenate(
        [PRIOR_LOG_ODDS_DEVIATION * part / np.sqrt(max(1, part.shape[1])) for part in parts],
        axis=1,
    )


def compute_relative_variance_of_prediction(proba: Floats, sheet: Questionnaire) -> Floats:
    """Compute the variance of the main answer relative to its squared range, ≤ 1/4.

    Args:
        proba: Distributions `[…, option]`.
    """
    values = np.array(sheet.scale().values)
    # no option is more: how unlikely is it that two draws agree, at most 1/2
    if not sheet.scale().ordinal:
        return np.asarray((1 - (proba**2).sum(axis=-1)) / 2)

    # values from 0 to 1, so that the variance is a share of the squared range
    values = (values - values[0]) / (values[-1] - values[0])
    variance: Floats = np.maximum(proba @ values**2 - (proba @ values) ** 2, 0.0)
    return variance


def choose_texts_to_label_next(
    vectors: Floats,
    doubt: Floats,
    labeled: Bools,
    count: int,
    *,
    askable: Bools | None = None,
) -> LabelQueries:
    """Return the labels to ask for next, each text at most once.

    Args:
        vectors: Of the texts, labeled or not `[row, width]`; see `make_vectors_for_choosing_labels`.
        doubt: Of each judge's answer about each text `[row, judge]`, see `compute_relative_variance_of_prediction`; one
            column where judges are not told apart.
        labeled: Which labels there are `[row, judge]`.
        count: How many to pick; fewer are where fewer are left.
        askable: Which labels can be had `[row, judge]`; None: all that are not labeled.
    """
    # `[row, judge]`: the labels that may still be picked
    free = ~labeled if askable is None else askable & ~labeled
    design = _Design.of(vectors, doubt, labeled)
    rows = []
    judges = []
    falls = []
    for _ in range(count):
        if not free.any():
            break
        # the label that reduces the mean variance most, given those picked before it
        fall = np.where(free, design.falls(), -np.inf)
        row, judge = divmod(int(fall.argmax()), fall.shape[1])
        rows.append(row)
        judges.append(judge)
        falls.append(float(fall[row, judge]))
        design.label(row, judge)
        # each text is asked about once, whoever the judge is
        free = free.copy()
        free[row] = False

    return LabelQueries(
        np.array(rows, dtype=np.int64),
        np.array(judges, dtype=np.int64),
        np.array(falls),
    )


def rank_unlabeled_texts_by_information(
    vectors: Floats,
    doubt: Floats,
    labeled: Bools,
    first: int,
) -> Ints:
    """Sort the texts without a label by how telling theirs is, the most telling first.

    Args:
        vectors: See `choose_texts_to_label_next`.
        doubt: `[row, 1]`.
        labeled: Which labels there are `[row, 1]`.
        first: How many are chosen one after another; the others are sorted as if these had labels.
    """
    picked = choose_texts_to_label_next(vectors, doubt, labeled, first).row
    # the others as if those picked had their labels; `-inf` sorts labeled ones to the end
    labeled_or_picked = labeled.copy()
    labeled_or_picked[picked] = True
    falls = np.where(
        labeled_or_picked, -np.inf, _Design.of(vectors, doubt, labeled_or_picked).falls()
    )[:, 0]

    return np.concatenate(
        [picked, np.argsort(-falls, kind="stable")[: int((~labeled_or_picked).sum())]]
    )


@dataclass(eq=False)
class _Design:
    """The logistic model for choosing labels, with text and judge effects.

    Attributes:
        A: 1 and the texts' vectors `[row, d]`.
        doubt: `[row, judge]`.
        C: Covariance of the weights `[d + j, d + j]`.
        M: Σ w²·z·zᵀ over all predictions, mean `[d + j, d + j]`.
    """

    A: Floats
    doubt: Floats
    C: Floats
    M: Floats

    @classmethod
    def of(cls, vectors: Floats, doubt: Floats, labeled: Bools) -> _Design:
        # a column of ones in front is the intercept
        A = np.concatenate([np.ones((len(vectors), 1)), vectors], axis=1)
        judges = doubt.shape[1] if doubt.shape[1] > 1 else 0
        # prior precisions of the intercept, the texts' weights, and the judges' own intercepts
        prior = np.concatenate(
            [
                [INTERCEPT_PRIOR_PRECISION],
                np.ones(vectors.shape[1]),
                np.full(judges, JUDGE_INTERCEPT_PRIOR_PRECISION),
            ]
        )
        precision = np.diag(prior) + _sum_weighted_outer_products(A, doubt * labeled)

        return cls(
            A,
            doubt,
            np.asarray(np.linalg.inv(precision), dtype=np.float64),
            _sum_weighted_outer_products(A, doubt**2) / max(1, doubt.size),
        )

    def falls(self) -> Floats:
        """Compute the reduction of tr(MC) by each label `[row, judge]`: w·zᵀCMCz / (1 + w·zᵀCz)."""
        # w·zᵀCMCz `[row, judge]`
        gain: Floats = self.doubt * self._squares(self.C @ self.M @ self.C)
        return gain / (1 + self.doubt * self._squares(self.C))

    def label(self, row: int, judge: int) -> None:
        """Return the covariance with one label more, by Sherman and Morrison."""
        # z: the text's vector, and a 1 in the judge's column where judges are told apart
        z = np.concatenate([self.A[row], np.zeros(len(self.C) - self.A.shape[1])])
        if len(self.C) > self.A.shape[1]:
            z[self.A.shape[1] + judge] = 1.0

        w = self.doubt[row, judge]
        along = self.C @ z
        self.C = self.C - w * np.outer(along, along) / (1 + w * z @ along)

    def _squares(self, S: Floats) -> Floats:
        """Compute zᵀSz of every text with every judge `[row, judge]`, without forming pairs."""
        # the text's own part, the same for every judge `[row, 1]`
        d = self.A.shape[1]
        squares: Floats = ((self.A @ S[:d, :d]) * self.A).sum(axis=1)[:, None]
        if len(S) == d:
            return squares

        with_judges: Floats = squares + 2 * self.A @ S[:d, d:] + np.diag(S)[d:]
        return with_judges


def _sum_weighted_outer_products(A: Floats, weights: Floats) -> Floats:
    """Compute Σ weight·z·zᵀ over texts and judges; `weights` are `[row, judge]`."""
    # the block of the texts' weights `[d, d]`
    text = (A * weights.sum(axis=1, keepdims=True)).T @ A
    if weights.shape[1] == 1:
        return np.asarray(text)

    # what texts and judges share `[d, judge]`
    cross = A.T @ weights
    moments: Floats = np.block([[text, cross], [cross.T, np.diag(weights.sum(axis=0))]])
    return moments


def _standardize_columns(columns: Floats) -> Floats:
    mean, spread = compute_column_means_and_deviations(columns)
    standardized: Floats = np.nan_to_num(
        (columns - mean) / np.where(spread > 1e-12, spread, np.inf)
    )
    return np.clip(standardized, -MAX_STANDARD_SCORE, MAX_STANDARD_SCORE)


def _project_on_principal_components(embeddings: Floats) -> Floats:
    """Compute the first principal components `[row, direction]`, scaled together to deviation 1."""
    centered = embeddings - embeddings.mean(axis=0)
    # the smaller of the two products has the same components
    more_columns_than_rows = len(centered) < centered.shape[1]
    if more_columns_than_rows:
        product = centered @ centered.T
    else:
        product = centered.T @ centered

    sizes, axes = np.linalg.eigh(product)

    # the largest that aren't rounding, largest first
    least = 1e-9 * max(1e-9, float(sizes.max(initial=0.0)))
    leading = np.flatnonzero(sizes > least)[::-1][:EMBEDDING_COMPONENTS]
    if more_columns_than_rows:
        components = axes[:, leading] * np.sqrt(sizes[leading])
    else:
        components = centered @ axes[:, leading]

    if components.size:
        spread = float(components.std())
    else:
        spread = 0.0

    if spread <= 1e-12:
        return np.asarray(components[:, :0])
    return np.asarray(components / spread)
