"""The probability of a thumb up, by the model with the best cross-validation.

Rubrics are chosen on labels, too, so a model that is tried on other rows than it was fitted on still meets rubrics that
were chosen on these rows. Here every fold comes with the answers to the rubrics that were chosen without it.
Source of the point: Ambroise and McLachlan 2002, "Selection bias in gene extraction on the basis of microarray
gene-expression data", doi:10.1073/pnas.102102699.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.model_choice import standard_error
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.models.weighted_sum import WeightedSum
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.measures.arrays import Bools, Floats, Ints

THUMB = "thumb"
LIKERT = 5

SHRUNK = 100.0
"""Precision of the prior on what single rubrics deviate by: it takes some hundred conversations to move them far."""

PLAIN = "NetSAT"
"""Of the candidates, the one that learns least: it is taken where there are too few labels to compare them."""

Judges = Sequence[str | None] | None


@dataclass(frozen=True, eq=False)
class Fold:
    """One fold with the rubrics that were chosen without it.

    Attributes:
        out: The fold's rows `[row]`.
        signs: Of the rubrics `[rubric]`: +1 satisfaction, −1 dissatisfaction.
        answers: Probabilities, of all rows `[row, rubric, option]`; NaN where missing.
    """

    out: Bools
    signs: Sequence[float]
    answers: Floats


@dataclass(frozen=True)
class CandidateScore:
    """Cross-validated figures of a candidate.

    Attributes:
        log_loss: Mean −log p of the given thumb, in nats.
        behind: Its log-loss minus that of the best.
        error: Standard error of `behind`, over independent blocks.
    """

    name: str
    log_loss: float
    behind: float
    error: float
    n: int


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """The best candidate, and the figures of all.

    Attributes:
        scores: In the candidates' order.
        held_out: P(thumb up) of each row, by the best one fitted without its fold `[row]`.
    """

    chosen: str
    scores: tuple[CandidateScore, ...]
    held_out: Floats


def thumb_models(signs: Sequence[float]) -> dict[str, JudgedEstimator]:
    """Return what is compared, by name; users have intercepts, and nothing else, of their own."""
    signs = tuple(float(sign) for sign in signs)
    return {
        PLAIN: WeightedSum(signs, independence=1.0),
        "decorrelated NetSAT": WeightedSum(signs),
        "NetSAT with learned weights": WeightedSum(signs, independence=1.0, deviations=SHRUNK),
        "decorrelated NetSAT with learned weights": WeightedSum(signs, deviations=SHRUNK),
        "ordinal mixed effects": OrdinalMixedEffects(shared=30.0, intercepts=4.0, scales=None, slopes=None),
    }


def compare_models(
    folds: Sequence[Fold],
    positive: Bools,
    judges: Judges = None,
    progress: Callable[[], None] = lambda: None,
    together: Ints | None = None,
) -> ModelComparison:
    """Fit every candidate without each fold, and measure it there.

    Args:
        folds: Together all rows.
        positive: Thumbs `[row]`.
        judges: Who gave them `[row]`; None where nobody is known. A fold is predicted for somebody unknown, as a new
            conversation is.
        progress: Told after each fold.
        together: What goes together, a user's conversations for example, bears one number `[row]`; None: each row is
            alone.
    """
    proba: dict[str, Floats] = {}
    for fold in folds:
        known = ~fold.out
        who = None if judges is None else [judge for judge, keep in zip(judges, known, strict=True) if keep]
        for name in thumb_models(fold.signs):
            model = fitted(name, fold.answers[known], fold.signs, positive[known], who)
            proba.setdefault(name, np.full(len(positive), np.nan))[fold.out] = probability_positive(
                model, fold.answers[fold.out]
            )
        progress()
    losses = {name: -np.log(np.where(positive, p, 1 - p)) for name, p in proba.items()}
    best = min(losses, key=lambda name: float(losses[name].mean()))
    blocks = np.arange(len(positive)) if together is None else together
    scores = tuple(_score(name, loss, losses[best], blocks) for name, loss in losses.items())
    return ModelComparison(best, scores, proba[best])


def fitted(
    name: str,
    answers: Floats,
    signs: Sequence[float],
    positive: Bools,
    judges: Judges = None,
    rubrics: Sequence[str] | None = None,
) -> JudgedEstimator:
    """Return a candidate, fitted.

    Args:
        answers: Probabilities `[row, rubric, option]`.
        signs: `[rubric]`.
        positive: Thumbs `[row]`.
        judges: Who gave them `[row]`.
        rubrics: Ids of the rubrics, for its questionnaire; None: numbers.
    """
    questions = questionnaire(rubrics or [str(number) for number in range(len(signs))], answers.shape[2])
    return thumb_models(signs)[name].fit(flat(answers), positive.astype(np.float64), judges, questions)


def questionnaire(rubrics: Sequence[str], options: int = LIKERT) -> Questionnaire:
    """Make the questionnaire: rubrics with values from 0 to 10, and the thumb."""
    values = tuple(np.linspace(0.0, 10.0, options).tolist())
    asked = tuple(Scale(rubric, values) for rubric in rubrics)
    return Questionnaire((*asked, Scale(THUMB, (0.0, 1.0), asked=False)), THUMB)


def probability_positive(model: JudgedEstimator, answers: Floats, judges: Judges = None) -> Floats:
    """P(thumb up) `[row]` from probabilities `[row, rubric, option]`."""
    column: Floats = model.predict_proba(flat(answers), judges)[:, 1]
    return column


def flat(answers: Floats) -> Floats:
    """Reshape `[row, rubric, option]` to X, `[row, rubric × option]`."""
    return answers.reshape(len(answers), -1)


def _score(name: str, loss: Floats, best: Floats, together: Ints) -> CandidateScore:
    behind = loss - best
    return CandidateScore(name, float(loss.mean()), float(behind.mean()), standard_error(behind, together), len(loss))
