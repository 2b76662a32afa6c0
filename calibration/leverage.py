"""Leverage: how much the main answer would rise with another question's answer.

Source: Hashemi et al. 2024 (LLM-Rubric), appendix A, doi:10.18653/v1/2024.acl-long.745: the leverage of question i on
a text x is (∇x ŷ0 · ∇x ŷi) / (∇x ŷi · ∇x ŷi), where ŷ0 and ŷi are the expected answers to the main question and to i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from pollex.calibration.judgments import codes_of, one_a_row
from pollex.calibration.questionnaire import Questionnaire
from pollex.errors import WrongUse
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.intervals import FEWEST, interval_bounds

if TYPE_CHECKING:
    from pollex.calibration.estimator import JudgedEstimator  # scikit-learn comes with it, and takes a second to import

STEP = 1e-3
"""How far a probability is moved to either side; errors are of the order of its square."""

CELLS = 4_000_000
"""Numbers of X that are in memory at once while they are moved."""

Whose = Literal["judges", "asked"]
"""Whose answer to question i is gained on: what judges say, as the model predicts it, or what X says itself."""


@runtime_checkable
class Differentiable(Protocol):
    """A model that knows its own gradient."""

    def gradient(self, X: Floats, judges: Ints, question: int) -> Floats:
        """Compute ∇x of the expected answer `[row, column]`; judges are codes."""


@dataclass(frozen=True)
class Leverage:
    """The leverage of one question on the main one, over a set of texts.

    Attributes:
        mean: Over the texts, with its 95 % bootstrap interval `low` to `high`, which it lacks with fewer texts than an
            interval takes; None where it is undefined.
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


def leverages(
    model: JudgedEstimator,
    X: Any,
    rng: np.random.Generator,
    judges: Sequence[Any] | None = None,
    whose: Whose = "judges",
    resamples: int = 1000,
) -> list[Leverage]:
    """Compute the leverage of every other question, in the questionnaire's order.

    Args:
        model: Fitted.
        X: Texts `[row, question × option]`.
        judges: Whose main answer it is `[row]`; None: somebody unknown.
        whose: `judges`: gain on what the model predicts that judges answer to i, which it must have learned. `asked`:
            gain on the answer to i that stands in X.
    """
    sheet = model.questionnaire_
    rows = sheet.checked(X)
    others = [scale.question for scale in sheet.scales if scale.question != sheet.main]
    main = gradient(model, rows, judges)
    return [_leverage(model, rows, main, question, judges, whose, rng, resamples) for question in others]


def per_text(main: Floats, other: Floats) -> Floats:
    """Compute (∇ŷ0·∇ŷi)/(∇ŷi·∇ŷi) `[row]` from gradients; NaN if ŷi is constant."""
    norm = (other**2).sum(axis=1)
    found: Floats = np.divide((main * other).sum(axis=1), norm, out=np.full(len(main), np.nan), where=norm > 0)
    return found


def gradient(
    model: JudgedEstimator, X: Any, judges: Sequence[Any] | None = None, question: str | None = None
) -> Floats:
    """Compute ∇x of the expected answer to a question `[row, column]`.

    The model's own gradient where it has one, else differences. Columns of a question that is missing in a row, or
    does not apply, have none: 0.

    Raises:
        WrongUse: The model can't predict the question.
    """
    sheet = model.questionnaire_
    rows = sheet.checked(X)
    codes, place = codes_of(one_a_row(judges, len(rows)), model.judges_), sheet.index(question)
    if isinstance(model, Differentiable):
        found: Floats = model.gradient(rows, codes, place)
    else:
        portion = max(1, CELLS // (2 * max(1, sheet.width) ** 2))
        parts = [slice(start, start + portion) for start in range(0, len(rows), portion)] or [slice(0)]
        found = np.concatenate([_differences(model, rows[part], codes[part], place) for part in parts])
    return np.where(_applies(sheet, rows), found, 0.0)


def asked_gradient(sheet: Questionnaire, X: Floats, question: str) -> Floats:
    """Compute ∇x of the expected answer that X itself has."""
    place = [scale.question for scale in sheet.asked].index(question)
    block, values = sheet.blocks[question], np.array(sheet.asked[place].values)
    mass, answer = sheet.mass(X)[:, [place]], sheet.expected(X)[:, [place]]
    out = np.zeros_like(X)
    out[:, block] = np.divide(values - answer, mass, out=np.zeros((len(X), len(values))), where=mass > 0)
    return out


def _leverage(
    model: JudgedEstimator,
    X: Floats,
    main: Floats,
    question: str,
    judges: Sequence[Any] | None,
    whose: Whose,
    rng: np.random.Generator,
    resamples: int,
) -> Leverage:
    sheet = model.questionnaire_
    if not sheet.scale().ordinal:
        return Leverage(question, undefined="the main question's options are not ordered: there is nothing to raise")
    if not sheet.scale(question).ordinal:
        return Leverage(question, undefined="its options are not ordered: there is no unit to gain")
    if whose == "asked" and question not in sheet.blocks:
        return Leverage(question, undefined="it is not asked")
    try:
        other = asked_gradient(sheet, X, question) if whose == "asked" else gradient(model, X, judges, question)
    except WrongUse as error:
        return Leverage(question, undefined=error.what)
    values = per_text(main, other)
    return _summary(question, values[~np.isnan(values)], rng, resamples)


def _summary(question: str, values: Floats, rng: np.random.Generator, resamples: int) -> Leverage:
    if len(values) < 2:
        return Leverage(question, n=len(values), undefined="its answer depends on x in fewer than two texts")
    drawn = rng.multinomial(len(values), np.full(len(values), 1 / len(values)), size=resamples)
    low, high = interval_bounds(drawn @ values / len(values), len(values)) if len(values) >= FEWEST else (None, None)
    return Leverage(question, float(values.mean()), low, high, float(values.std(ddof=1)), len(values))


def _differences(model: JudgedEstimator, X: Floats, judges: Ints, place: int) -> Floats:
    """Compute central differences in one call; one-sided near probability 0.

    Past the checks of `predict`: a block that sums to 1 must be let a little over it.
    """
    width = X.shape[1]
    moved = np.repeat(X[:, None, None, :], 2, axis=1).repeat(width, axis=2)
    diagonal = np.arange(width)
    moved[:, 0, diagonal, diagonal] = np.maximum(X - STEP, 0.0)
    moved[:, 1, diagonal, diagonal] = X + STEP
    distribution = model._distribution(moved.reshape(-1, width), np.repeat(judges, 2 * width), place)
    values = distribution @ np.array(model.questionnaire_.scales[place].values)
    below, above = values.reshape(len(X), 2, width).transpose(1, 0, 2)
    found: Floats = (above - below) / (X + STEP - np.maximum(X - STEP, 0.0))
    return found


def _applies(sheet: Questionnaire, X: Floats) -> Bools:
    """Say which columns belong to a question that was answered `[row, column]`."""
    lengths = [len(scale.values) for scale in sheet.asked]
    return np.asarray(np.repeat(sheet.mass(X) > 0, lengths, axis=1))
