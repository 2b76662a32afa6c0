"""Choice of the question whose answer is expected to reduce uncertainty most.

By the law of total variance the variance of the main answer, given what is known, falls in expectation by
Var(E[y0 | known, xj]) once question j is answered with xj. How xj will turn out is taken from reference texts that
answered alike what is known: their blocks of j stand in, each as likely as the other, and the model says what it would
expect of the main answer then.

Source of the idea: Hashemi et al. 2024 (LLM-Rubric), section 7, doi:10.18653/v1/2024.acl-long.745.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.judgments import one_a_row
from pollex.calibration.questionnaire import Questionnaire
from pollex.errors import WrongUse
from pollex.measures.arrays import Floats, Ints
from pollex.measures.distributions import variance

NEIGHBOURS = 40
"""So many reference texts say how an answer may turn out."""

LEAST = 0.002
"""Asking pays while all that is left is expected to take so much of the main answer's variance away."""

CELLS = 4_000_000
"""Numbers of X that are in memory at once while answers are tried."""


@dataclass(frozen=True, eq=False)
class NextQuestion:
    """The next question for each text.

    Attributes:
        question: Id of the question `[row]`; None where none is left, or where asking does not pay any more.
        reduction: By how much each question is expected to lower the variance `[row, asked]`, in squared value units;
            NaN where it is answered already, or where no reference text answers it.
        left: The same of all questions together that are left `[row]`; 0 where none is.
        variance: Var(ŷ0) as it is now `[row]`.
    """

    question: tuple[str | None, ...]
    reduction: Floats
    left: Floats
    variance: Floats


def next_question(
    model: JudgedEstimator,
    X: Any,
    reference: Any,
    judges: Sequence[Any] | None = None,
    least: float = LEAST,
    neighbors: int = NEIGHBOURS,
    seed: int = 0,
) -> NextQuestion:
    """Return the unanswered question with the largest expected reduction of Var(ŷ0), by text.

    Args:
        model: Fitted, and able to predict from any subset of the questions.
        X: Texts `[row, question × option]`; blocks of NaN are not asked yet.
        reference: Texts with their answers, such as those of training, in the same shape.
        judges: Whose main answer it is `[row]`; None: somebody unknown.
        least: Stop where all questions that are left are expected to take away less than this share of Var(ŷ0)
            together: one by one each may seem not to pay. 0 never stops.
        neighbors: So many reference texts say how an answer may turn out.
        seed: Picks among reference texts that are as near; all are where nothing is known.

    Raises:
        WrongUse: X or the reference can't be read, settings make no sense, or the main answers have no order.
    """
    scale = model.questionnaire_.scale()
    if not scale.ordinal:
        raise WrongUse(
            f"the answers to {scale.question!r} have no order, and so no variance that a question could reduce",
            remedy="give its options in order and say so, or ask all questions",
        )
    if not 0 <= least < 1:
        raise WrongUse(f"a share of {least:g} to stop at", remedy="give one from 0 to below 1")
    trial = _Trial.of(model, X, reference, judges, neighbors, seed)
    reduction, left = trial.each(), trial.jointly()
    sheet = model.questionnaire_
    now = variance(model.predict_proba(X, judges), scale.values)
    able = ~np.isnan(reduction)
    place = np.where(able, reduction, -np.inf).argmax(axis=1) if able.size else np.zeros(len(now), dtype=np.int64)
    pays = able.any(axis=1) & (left >= least * now)
    names = [scale.question for scale in sheet.asked]
    chosen = tuple(names[p] if ok else None for p, ok in zip(place.tolist(), pays.tolist(), strict=True))
    return NextQuestion(chosen, reduction, left, now)


def distances(sheet: Questionnaire, X: Floats, reference: Floats) -> Floats:
    """Compute squared distances `[row, reference]` in the known answers of each row.

    Per question: of the expected answers, in standard deviations of the reference, and 1 where it applies to one of
    them only. What a reference text does not answer counts as its mean.
    """
    score, applies = sheet.expected(reference), (sheet.mass(reference) > 0).astype(np.float64)
    counts = np.maximum((~np.isnan(score)).sum(axis=0), 1)
    mean = np.nansum(score, axis=0) / counts
    spread = np.sqrt(np.nansum((score - mean) ** 2, axis=0) / counts)
    scale = np.where(spread > 0, spread, 1.0)
    known = sheet.present(X).astype(np.float64)
    there = np.nan_to_num((score - mean) / scale), np.where(sheet.present(reference), applies, applies.mean(axis=0))
    here = np.nan_to_num((sheet.expected(X) - mean) / scale), (sheet.mass(X) > 0).astype(np.float64)
    return sum((_squares(h, t, known) for h, t in zip(here, there, strict=True)), np.zeros((len(X), len(reference))))


def nearest(distance: Floats, count: int) -> Ints:
    """Return columns of the `count` smallest values of each row `[row, count]`."""
    return np.argsort(distance, axis=1, kind="stable")[:, :count]


def _squares(here: Floats, there: Floats, known: Floats) -> Floats:
    """Σ_j known_ij (here_ij − there_kj)² `[row, reference]`, without an array of three dimensions."""
    kept = here * known
    total: Floats = (kept**2).sum(axis=1)[:, None] - 2 * kept @ there.T + known @ (there**2).T
    return np.maximum(total, 0.0).round(12)  # equals stay equal, whatever the order of summing


@dataclass(frozen=True, eq=False)
class _Trial:
    """Texts with the reference texts whose answers are tried on them.

    Attributes:
        X: `[row, column]`.
        reference: In a random order: of those that are as near the first are taken, which then are a sample.
        distance: `[row, reference]`, in what is known.
        judges: Names `[row]`.
    """

    model: JudgedEstimator
    X: Floats
    reference: Floats
    distance: Floats
    judges: np.ndarray[Any, Any]
    neighbors: int

    @classmethod
    def of(
        cls, model: JudgedEstimator, X: Any, reference: Any, judges: Sequence[Any] | None, neighbors: int, seed: int
    ) -> _Trial:
        sheet = model.questionnaire_
        rows, texts = sheet.checked(X), sheet.checked(reference)
        if not len(texts) or neighbors < 2:
            raise WrongUse(
                f"{len(texts)} reference texts, {neighbors} neighbors", remedy="give texts, and 2 neighbors or more"
            )
        texts = texts[np.random.default_rng(seed).permutation(len(texts))]
        who = np.array(one_a_row(judges, len(rows)), dtype=object)
        return cls(model, rows, texts, distances(sheet, rows, texts), who, neighbors)

    def each(self) -> Floats:
        """Compute the reduction by each question `[row, asked]`; NaN if answered or unknown."""
        sheet = self.model.questionnaire_
        asked, answers = sheet.present(self.X), sheet.present(self.reference)
        out = np.full(asked.shape, np.nan)
        for place, block in enumerate(sheet.blocks.values()):
            tried, able = np.flatnonzero(~asked[:, place]), np.flatnonzero(answers[:, place])
            if len(tried) and len(able):
                out[tried, place] = self._spread(tried, able, block)
        return out

    def jointly(self) -> Floats:
        """Compute the reduction by all remaining questions together `[row]`."""
        tried = np.flatnonzero(np.isnan(self.X).any(axis=1))
        out = np.zeros(len(self.X))
        if len(tried):
            out[tried] = self._spread(tried, np.arange(len(self.reference)), slice(None))
        return out

    def _spread(self, tried: Ints, able: Ints, columns: slice) -> Floats:
        """Variance over the neighbors' answers of what the model then expects `[tried]`.

        Args:
            able: Reference texts to choose neighbors from.
            columns: Those that a neighbor fills in, where they are missing.
        """
        near = able[nearest(self.distance[np.ix_(tried, able)], self.neighbors)]
        count = near.shape[1]
        portion = max(1, CELLS // (count * self.X.shape[1]))
        out = np.empty(len(tried))
        for start in range(0, len(tried), portion):
            part = slice(start, start + portion)
            X = np.repeat(self.X[tried[part]], count, axis=0)
            given = self.reference[near[part].ravel()][:, columns]
            X[:, columns] = np.where(np.isnan(X[:, columns]), given, X[:, columns])
            expected = self.model.predict(X, np.repeat(self.judges[tried[part]], count).tolist())
            out[part] = expected.reshape(-1, count).var(axis=1)
        return out
