"""The probability of a thumb up: by LLM-Rubric's network, unless cross-validation finds another model better.

Rubrics are chosen on labels, too, so a model that is tried on other rows than it was fitted on still meets rubrics that
were chosen on these rows. Here every fold comes with the answers to the rubrics that were chosen without it.
Source of the point: Ambroise and McLachlan 2002, "Selection bias in gene extraction on the basis of microarray
gene-expression data", doi:10.1073/pnas.102102699.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pollex.calibration.candidates import BEST, NETWORK, PLAIN, START, CandidateScore, LabelsPoint
from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.model_choice import standard_error
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.measures.arrays import Bools, Floats, Ints

THUMB = "thumb"
LIKERT = 5

SHRUNK = 100.0
"""Precision of the prior on what single rubrics deviate by: it takes some hundred conversations to move them far."""

UNITS = 8
"""Of each layer of the network: with 16 it needs twice as many labels for the same gain in the planted world."""

FEW = 50
"""With fewer labels NetSAT gives the probability: what learns more has nothing to be compared on."""

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


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """The best candidate, and the figures of all.

    Attributes:
        why: Why this one, in a sentence.
        scores: In the candidates' order.
        held_out: P(thumb up) of each row, by the chosen one fitted without its fold `[row]`.
        curve: With few to all labels; empty where there are too few.
    """

    chosen: str
    why: str
    scores: tuple[CandidateScore, ...]
    held_out: Floats
    curve: tuple[LabelsPoint, ...] = ()


def thumb_models(signs: Sequence[float]) -> dict[str, JudgedEstimator]:
    """Return what is compared, by name; users have intercepts, and nothing else, of their own."""
    from pollex.calibration.models.network import CalibrationNetwork  # who scores needs one of them
    from pollex.calibration.models.ordinal import OrdinalMixedEffects
    from pollex.calibration.models.weighted_sum import WeightedSum

    signs = tuple(float(sign) for sign in signs)
    return {
        PLAIN: WeightedSum(signs, independence=1.0),
        START: WeightedSum(signs),
        "NetSAT with learned weights": WeightedSum(signs, independence=1.0, deviations=SHRUNK),
        "decorrelated NetSAT with learned weights": WeightedSum(signs, deviations=SHRUNK),
        "ordinal mixed effects": OrdinalMixedEffects(shared=30.0, intercepts=4.0, scales=None, slopes=None),
        NETWORK: CalibrationNetwork(UNITS, UNITS, start=WeightedSum(signs)),
    }


def compare_models(
    folds: Sequence[Fold],
    positive: Bools,
    judges: Judges = None,
    progress: Callable[[], None] = lambda: None,
    together: Ints | None = None,
    wanted: str = NETWORK,
) -> ModelComparison:
    """Fit every candidate without each fold, measure it there, and choose.

    Args:
        folds: Together all rows.
        positive: Thumbs `[row]`.
        judges: Who gave them `[row]`; None: nobody is known. A fold is predicted for somebody unknown, as if new.
        progress: Told after each fold.
        together: What goes together, a user's conversations for example, bears one number `[row]`; None: each row is
            alone.
        wanted: A candidate's name, or `best`. The network is taken only if no other is better by more than a standard
            error, and of few labels it learns nothing.
    """
    blocks = np.arange(len(positive)) if together is None else together
    few = len(positive) < FEW and wanted in (NETWORK, BEST)
    proba: dict[str, Floats] = {}
    for fold in folds:
        known = ~fold.out
        who = None if judges is None else [judge for judge, keep in zip(judges, known, strict=True) if keep]
        for name in thumb_models(fold.signs):
            if not (few and name == NETWORK):
                model = fit_one(name, fold.answers[known], fold.signs, positive[known], who, groups=blocks[known])
                predicted = probability_positive(model, fold.answers[fold.out])
                proba.setdefault(name, np.full(len(positive), np.nan))[fold.out] = predicted
        progress()
    losses = {name: -np.log(np.where(positive, p, 1 - p)) for name, p in proba.items() if np.isfinite(p).all()}
    chosen, why = (PLAIN, FEW_LABELS.format(len(positive))) if few else _choice(losses, blocks, wanted)
    best = losses[_least(losses)]
    scores = tuple(_score(name, loss, best, blocks) for name, loss in losses.items())
    curve: tuple[LabelsPoint, ...] = ()
    if NETWORK in losses and len(positive) >= 2 * FEW:
        whole = _point(round(len(positive) * (1 - 1 / len(folds))), losses, blocks)
        curve = (*(_with_fewer(folds, positive, blocks, share) for share in SHARES), whole)
    return ModelComparison(chosen, why, scores, proba[chosen], curve)


SHARES = (0.25, 0.5)
"""Of the labels, for the curve."""


def _with_fewer(folds: Sequence[Fold], positive: Bools, blocks: Ints, share: float) -> LabelsPoint:
    """Compare the network with its start on a share of each fold's training rows; smaller networks, for the time."""
    losses = {name: np.zeros(len(positive)) for name in (START, NETWORK)}
    counts = []
    for number, fold in enumerate(folds):
        rows = np.random.default_rng(number).permutation(np.flatnonzero(~fold.out))
        sides = (rows[positive[rows]], rows[~positive[rows]])
        some = np.sort(np.concatenate([side[: max(1, round(share * len(side)))] for side in sides]))
        counts.append(len(some))
        for name, loss in losses.items():
            smaller = {"seeds": 5, "strengths": (20.0, 80.0)} if name == NETWORK else {}
            model = fit_one(name, fold.answers[some], fold.signs, positive[some], groups=blocks[some], changes=smaller)
            p = probability_positive(model, fold.answers[fold.out])
            loss[fold.out] = -np.log(np.where(positive[fold.out], p, 1 - p))
    return _point(round(float(np.mean(counts))), losses, blocks)


def _point(labels: int, losses: Mapping[str, Floats], blocks: Ints) -> LabelsPoint:
    gain = losses[START] - losses[NETWORK]
    start, network = (float(losses[name].mean()) for name in (START, NETWORK))
    return LabelsPoint(labels, start, network, float(gain.mean()), standard_error(gain, blocks))


FEW_LABELS = "{} labels are too few to learn more than NetSAT: from " + f"{FEW} on models are compared"


def _least(losses: Mapping[str, Floats]) -> str:
    return min(losses, key=lambda name: float(losses[name].mean()))


def _choice(losses: Mapping[str, Floats], blocks: Ints, wanted: str) -> tuple[str, str]:
    best = _least(losses)
    if wanted not in (NETWORK, BEST):
        return wanted, f"{wanted} was asked for; {best} has the least log-loss"
    if wanted == BEST or NETWORK not in losses:
        return best, f"{best} has the least log-loss"
    if best == NETWORK:
        return NETWORK, "the network has the least log-loss"
    ahead = losses[NETWORK] - losses[best]
    gap, error = float(ahead.mean()), standard_error(ahead, blocks)
    told = f"{best} is {gap:.3f} ± {error:.3f} nats better"
    if gap > error:
        return best, f"{told} than the network, more than a standard error"
    return NETWORK, f"{told}, which is within a standard error of the network"


def fit_one(
    name: str,
    answers: Floats,
    signs: Sequence[float],
    positive: Bools,
    judges: Judges = None,
    rubrics: Sequence[str] | None = None,
    groups: Ints | None = None,
    changes: Mapping[str, Any] | None = None,
) -> JudgedEstimator:
    """Return a candidate, fitted.

    Args:
        answers: Probabilities `[row, rubric, option]`.
        signs: `[rubric]`.
        positive: Thumbs `[row]`.
        judges: Who gave them `[row]`.
        rubrics: Ids of the rubrics, for its questionnaire; None: numbers.
        groups: What goes together in a candidate's own cross-validation `[row]`; None: each row is alone.
        changes: Parameters of its own.
    """
    questions = questionnaire(rubrics or [str(number) for number in range(len(signs))], answers.shape[2])
    model: JudgedEstimator = thumb_models(signs)[name].set_params(**changes or {})
    return model.fit(
        flatten(answers), positive.astype(np.float64), judges, questions, None if groups is None else groups.tolist()
    )


def questionnaire(rubrics: Sequence[str], options: int = LIKERT) -> Questionnaire:
    """Make the questionnaire: rubrics with values from 0 to 10, and the thumb."""
    values = tuple(np.linspace(0.0, 10.0, options).tolist())
    asked = tuple(Scale(rubric, values) for rubric in rubrics)
    return Questionnaire((*asked, Scale(THUMB, (0.0, 1.0), asked=False)), THUMB)


def probability_positive(model: JudgedEstimator, answers: Floats, judges: Judges = None) -> Floats:
    """P(thumb up) `[row]` from probabilities `[row, rubric, option]`."""
    column: Floats = model.predict_proba(flatten(answers), judges)[:, 1]
    return column


def flatten(answers: Floats) -> Floats:
    """Reshape `[row, rubric, option]` to X, `[row, rubric × option]`."""
    return answers.reshape(len(answers), -1)


def _score(name: str, loss: Floats, best: Floats, together: Ints) -> CandidateScore:
    behind = loss - best
    return CandidateScore(name, float(loss.mean()), float(behind.mean()), standard_error(behind, together), len(loss))
