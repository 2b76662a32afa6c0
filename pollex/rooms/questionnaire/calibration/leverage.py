"""Leverage: how much the main answer would rise with another question's answer.

Source: Hashemi et al. 2024 (LLM-Rubric), appendix A, doi:10.18653/v1/2024.acl-long.745: the
leverage of question i on a text x is (∇x ŷ0 · ∇x ŷi) / (∇x ŷi · ∇x ŷi). Here ŷ0 is the expected
answer to the main question as the model predicts it, and ŷi the expected answer to i that x itself
has.

Response curves: each judge's expected answer against the LLM's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pollex.calibration.judgments import UNKNOWN_JUDGE_CODE
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.measures.arrays import Floats
from pollex.measures.intervals import MIN_UNITS_FOR_INTERVAL, compute_interval_bounds_from_resamples

if TYPE_CHECKING:
    # scikit-learn comes with it, and takes a second to import
    from pollex.calibration.estimator import JudgedEstimator

DIFFERENCE_STEP = 1e-3
"""How far a probability is moved to either side; errors are of the order of its square."""

MAX_CELLS_A_CALL = 4_000_000
"""Numbers of X that are in memory at once while they are moved."""

LEVERAGE_RESAMPLES = 1000


@dataclass(frozen=True)
class Leverage:
    """The leverage of one question on the main one, over a set of texts.

    Attributes:
        mean: Over the texts, with its 95 % bootstrap interval `low` to `high`, which it lacks with
            fewer texts than an interval takes; None where it is undefined.
        spread: Standard deviation over the texts.
        n: Texts on which it is defined.
        undefined: Why there is no figure; empty where there is one.
    """

    question: str
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    spread: float | None = None
    n: int = 0
    undefined: str = ""


def compute_leverages(
    model: JudgedEstimator,
    X: Any,
    rng: np.random.Generator,
) -> list[Leverage]:
    """Compute the leverage of every other question, in the questionnaire's order, on the answer of somebody unknown.

    Args:
        model: Fitted.
        X: Texts `[row, question × option]`.
    """
    sheet = model.questionnaire_
    rows = sheet.checked(X)
    main = compute_main_gradient(model, rows)

    leverages = []
    for scale in sheet.scales:
        if scale.question != sheet.main:
            leverages.append(_measure_leverage(sheet, rows, main, scale, rng))
    return leverages


def compute_leverage_per_text(main: Floats, other: Floats) -> Floats:
    """Compute (∇ŷ0·∇ŷi)/(∇ŷi·∇ŷi) `[row]` from gradients; NaN if ŷi is constant."""
    norm = (other**2).sum(axis=1)
    ratio: Floats = np.divide(
        (main * other).sum(axis=1),
        norm,
        out=np.full(len(main), np.nan),
        where=norm > 0,
    )
    return ratio


def compute_main_gradient(model: JudgedEstimator, X: Floats) -> Floats:
    """Compute ∇x of the expected main answer `[row, column]`, by differences.

    Columns of a question that is missing in a row, or does not apply, have none: 0.
    """
    # X is moved in each column, up and down: width² numbers a row and side
    batch = max(1, MAX_CELLS_A_CALL // (2 * max(1, model.questionnaire_.width) ** 2))
    parts = [X[start : start + batch] for start in range(0, len(X), batch)] or [X]
    slopes = np.concatenate([_compute_central_differences(model, part) for part in parts])
    lengths = []
    for scale in model.questionnaire_.asked:
        lengths.append(len(scale.values))

    return np.where(
        np.repeat(model.questionnaire_.mass(X) > 0, lengths, axis=1),
        slopes,
        0.0,
    )


def compute_own_gradient(sheet: Questionnaire, X: Floats, question: str) -> Floats:
    """Compute ∇x of the expected answer that X itself has."""
    # ∂/∂p of Σ p·value / Z is (value − expected) / Z
    place = [scale.question for scale in sheet.asked].index(question)
    block = sheet.blocks[question]
    values = np.array(sheet.asked[place].values)
    mass = sheet.mass(X)[:, [place]]
    answer = sheet.expected(X)[:, [place]]
    out = np.zeros_like(X)
    out[:, block] = np.divide(
        values - answer,
        mass,
        out=np.zeros((len(X), len(values))),
        where=mass > 0,
    )

    return out


def _measure_leverage(
    sheet: Questionnaire,
    X: Floats,
    main: Floats,
    scale: Scale,
    rng: np.random.Generator,
) -> Leverage:
    question = scale.question
    if not sheet.scale().ordinal:
        return Leverage(
            question,
            undefined="the main question's options are not ordered: there is nothing to raise",
        )

    if not scale.ordinal:
        return Leverage(
            question,
            undefined="its options are not ordered: there is no unit to gain",
        )
    if not scale.asked:
        return Leverage(question, undefined="it is not asked")

    # texts on which the ratio is defined
    values = compute_leverage_per_text(main, compute_own_gradient(sheet, X, question))
    values = values[~np.isnan(values)]
    n = len(values)
    if n < 2:
        return Leverage(
            question,
            n=n,
            undefined="its answer depends on x in fewer than two texts",
        )

    # the mean over texts, drawn again with replacement
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=LEVERAGE_RESAMPLES)
    low, high = (
        compute_interval_bounds_from_resamples(drawn @ values / n, n)
        if n >= MIN_UNITS_FOR_INTERVAL
        else (None, None)
    )
    return Leverage(
        question,
        float(values.mean()),
        low,
        high,
        float(values.std(ddof=1)),
        n,
    )


def _compute_central_differences(model: JudgedEstimator, X: Floats) -> Floats:
    """Compute central differences in one call; one-sided near probability 0.

    Past the checks of `predict`: a block that sums to 1 must be let a little over it.
    """
    # `[row, side, column moved, column]`
    width = X.shape[1]
    moved = np.repeat(X[:, None, None, :], 2, axis=1).repeat(width, axis=2)
    diagonal = np.arange(width)
    moved[:, 0, diagonal, diagonal] = np.maximum(X - DIFFERENCE_STEP, 0.0)
    moved[:, 1, diagonal, diagonal] = X + DIFFERENCE_STEP
    # the main answer's expected value after each move `[row, side, column]`, for nobody known
    nobody = np.full(2 * width * len(X), UNKNOWN_JUDGE_CODE)
    distribution = model._distribution(
        moved.reshape(-1, width),
        nobody,
        model.questionnaire_.index(),
    )
    values = distribution @ np.array(model.questionnaire_.scale().values)
    below, above = values.reshape(len(X), 2, width).transpose(1, 0, 2)
    slopes: Floats = (above - below) / (X + DIFFERENCE_STEP - np.maximum(X - DIFFERENCE_STEP, 0.0))

    return slopes
