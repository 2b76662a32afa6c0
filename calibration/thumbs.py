"""The probability of a thumb up: by LLM-Rubric's network, beside simpler models that it is compared with.

Rubrics are chosen on labels, too, so a model that is tried on other rows than it was fitted on
still meets rubrics that were chosen on these rows. Here every fold comes with the answers to the
rubrics that were chosen without it. Source of the point: Ambroise and McLachlan 2002, "Selection
bias in gene extraction on the basis of microarray gene-expression data",
doi:10.1073/pnas.102102699.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pollex.calibration.candidates import (
    CALIBRATION_NETWORK_NAME,
    DECORRELATED_NETSAT_NAME,
    LEAST_LOG_LOSS_CHOICE_NAME,
    NETWORK_STARTING_MODEL_NAME,
    PLAIN_NETSAT_NAME,
    CandidateScore,
    LabelsPoint,
)
from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.measures.arrays import Bools, Floats, Ints

THUMB_QUESTION_ID = "thumb"
LIKERT_OPTION_COUNT = 5

RUBRIC_DEVIATION_PRECISION = 100.0
"""Precision of the prior on what single rubrics deviate by: it takes some hundred conversations to move them far."""

HIDDEN_UNITS_A_LAYER = 8
"""Of each layer of the network: with 16 it needs twice as many labels for the same gain in the planted world."""

NETWORK_PENALTY_STRENGTHS_TRIED = (5.0, 20.0)
"""λ, how strongly the network is shrunk to its beginning: the second, unless thousands of labels show that less is
better."""

MIN_LABELS_FOR_LEARNING_CURVE = 100
"""Labels from which on the network is measured with fewer, too."""

JudgePerConversation = Sequence[str | None] | None


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
    """The candidate that is taken, and the figures of all.

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


def make_candidates(signs: Sequence[float]) -> dict[str, JudgedEstimator]:
    """Return what is compared, by name; users have intercepts, and nothing else, of their own."""
    # who scores needs one of them
    from pollex.calibration.models.network import CalibrationNetwork
    from pollex.calibration.models.ordinal import OrdinalMixedEffects
    from pollex.calibration.models.weighted_sum import WeightedSum

    signs = tuple(float(sign) for sign in signs)

    return {
        PLAIN_NETSAT_NAME: WeightedSum(signs, independence=1.0),
        DECORRELATED_NETSAT_NAME: WeightedSum(signs),
        "NetSAT with learned weights": WeightedSum(
            signs, independence=1.0, deviations=RUBRIC_DEVIATION_PRECISION
        ),
        "decorrelated NetSAT with learned weights": WeightedSum(
            signs, deviations=RUBRIC_DEVIATION_PRECISION
        ),
        "ordinal mixed effects": OrdinalMixedEffects(
            shared=30.0, intercepts=4.0, scales=None, slopes=None
        ),
        CALIBRATION_NETWORK_NAME: CalibrationNetwork(
            HIDDEN_UNITS_A_LAYER,
            HIDDEN_UNITS_A_LAYER,
            start=make_network_start(signs),
            strengths=NETWORK_PENALTY_STRENGTHS_TRIED,
        ),
    }


def make_network_start(signs: Sequence[float]) -> JudgedEstimator:
    """Return what the network begins as: the mean of what it contains, each fitted by itself.

    Ordinal mixed effects follow labels whatever side a rubric is said to be of; NetSAT with learned
    weights, plain and decorrelated, begins at the sides.
    """
    from pollex.calibration.models.ordinal import OrdinalMixedEffects  # as above
    from pollex.calibration.models.pooled import LogPool
    from pollex.calibration.models.weighted_sum import WeightedSum

    return LogPool(
        (
            OrdinalMixedEffects(shared=30.0, intercepts=4.0, scales=None, slopes=None),
            WeightedSum(signs, deviations=RUBRIC_DEVIATION_PRECISION),
            WeightedSum(signs, independence=1.0, deviations=RUBRIC_DEVIATION_PRECISION),
        )
    )


def compare_calibration_models_by_folds(
    folds: Sequence[Fold],
    positive: Bools,
    judges: JudgePerConversation = None,
    progress: Callable[[], None] = lambda: None,
    together: Ints | None = None,
    requested: str = CALIBRATION_NETWORK_NAME,
) -> ModelComparison:
    """Fit every candidate without each fold, and measure it there.

    Args:
        folds: Together all rows.
        positive: Thumbs `[row]`.
        judges: Who gave them `[row]`; None: nobody is known. A fold is predicted for somebody
            unknown, as if new.
        progress: Told after each fold.
        together: What goes together, a user's conversations for example, bears one number `[row]`;
            None: each row is alone.
        requested: A candidate's name, or `best`.
    """
    # P(thumb up) of each row by each candidate, fitted without the row's fold
    if together is None:
        blocks = np.arange(len(positive))
    else:
        blocks = together

    proba: dict[str, Floats] = {}
    for fold in folds:
        training = ~fold.out
        who = None
        if judges is not None:
            who = []
            for judge, inside in zip(judges, training, strict=True):
                if inside:
                    who.append(judge)
        for name in (*make_candidates(fold.signs), NETWORK_STARTING_MODEL_NAME):
            model = fit_calibration_model(
                name,
                fold.answers[training],
                fold.signs,
                positive[training],
                who,
                groups=blocks[training],
            )
            predicted = predict_thumb_up_probability(model, fold.answers[fold.out])
            proba.setdefault(name, np.full(len(positive), np.nan))[fold.out] = predicted

        progress()

    # log-losses `[row]`; what the network begins as is measured, and can't be chosen
    every = {}
    for name, p in proba.items():
        every[name] = -np.log(np.where(positive, p, 1 - p))

    losses = {}
    for name, loss in every.items():
        if name != NETWORK_STARTING_MODEL_NAME:
            losses[name] = loss

    chosen, why = _choose_calibration_model(losses, requested)
    # what the network adds with a quarter, a half and all of the labels
    curve: tuple[LabelsPoint, ...] = ()
    if CALIBRATION_NETWORK_NAME in losses and len(positive) >= MIN_LABELS_FOR_LEARNING_CURVE:
        whole = _measure_learning_curve_point(
            round(len(positive) * (1 - 1 / len(folds))),
            every,
            blocks,
        )
        curve = (
            *(
                _measure_learning_curve(folds, positive, blocks, share)
                for share in LEARNING_CURVE_SHARES
            ),
            whole,
        )

    return ModelComparison(
        chosen,
        why,
        make_cross_validation_of_each_model(losses, chosen, blocks),
        proba[chosen],
        curve,
    )


LEARNING_CURVE_SHARES = (0.25, 0.5)
"""Of the labels, for the curve."""


def _measure_learning_curve(
    folds: Sequence[Fold],
    positive: Bools,
    blocks: Ints,
    share: float,
) -> LabelsPoint:
    """Compare the network with its beginning on a share of each fold's training rows; fewer networks, for the time."""
    losses = {}
    for name in (NETWORK_STARTING_MODEL_NAME, CALIBRATION_NETWORK_NAME):
        losses[name] = np.zeros(len(positive))

    counts = []
    for number, fold in enumerate(folds):
        # a share of each class, so that neither is lost
        rows = np.random.default_rng(number).permutation(np.flatnonzero(~fold.out))
        sides = (rows[positive[rows]], rows[~positive[rows]])
        part = np.sort(np.concatenate([side[: max(1, round(share * len(side)))] for side in sides]))
        counts.append(len(part))

        for name, loss in losses.items():
            smaller = {"seeds": 5} if name == CALIBRATION_NETWORK_NAME else {}
            model = fit_calibration_model(
                name,
                fold.answers[part],
                fold.signs,
                positive[part],
                groups=blocks[part],
                changes=smaller,
            )
            p = predict_thumb_up_probability(model, fold.answers[fold.out])
            loss[fold.out] = -np.log(np.where(positive[fold.out], p, 1 - p))

    return _measure_learning_curve_point(round(float(np.mean(counts))), losses, blocks)


def _measure_learning_curve_point(
    labels: int,
    losses: Mapping[str, Floats],
    blocks: Ints,
) -> LabelsPoint:
    from pollex.calibration.paired import (
        compute_clustered_standard_error_of_mean,  # who predicts alone needs none
    )

    gain = losses[NETWORK_STARTING_MODEL_NAME] - losses[CALIBRATION_NETWORK_NAME]
    start = float(losses[NETWORK_STARTING_MODEL_NAME].mean())
    network = float(losses[CALIBRATION_NETWORK_NAME].mean())

    return LabelsPoint(
        labels,
        start,
        network,
        float(gain.mean()),
        compute_clustered_standard_error_of_mean(gain, blocks),
    )


def _find_model_of_least_loss(losses: Mapping[str, Floats]) -> str:
    return min(losses, key=lambda name: float(losses[name].mean()))


def _choose_calibration_model(losses: Mapping[str, Floats], requested: str) -> tuple[str, str]:
    """Return what is taken and why: what the user wants, whatever the figures say."""
    least = _find_model_of_least_loss(losses)
    if requested == LEAST_LOG_LOSS_CHOICE_NAME:
        return least, f"{least} has the least log-loss"
    if requested == CALIBRATION_NETWORK_NAME:
        return CALIBRATION_NETWORK_NAME, "it is the model of every set, unless another is asked for"
    return requested, f"{requested} was asked for; {least} has the least log-loss"


def make_cross_validation_of_each_model(
    losses: Mapping[str, Floats],
    chosen: str,
    blocks: Ints,
) -> tuple[CandidateScore, ...]:
    """Return the figures of all candidates, beside those of the chosen one.

    Args:
        losses: By candidate `[row]`.
        blocks: What goes together bears one number `[row]`.
    """
    from pollex.calibration.paired import (  # as above
        compute_clustered_standard_error_of_mean,
        compute_joint_intervals_of_mean_gains,
    )

    # by how much each candidate is ahead of the chosen one, with intervals that hold together
    least = losses[_find_model_of_least_loss(losses)]
    others = []
    for name in losses:
        if name != chosen:
            others.append(name)

    gains = np.array([losses[chosen] - losses[name] for name in others]).reshape(len(others), -1).T
    ends = np.zeros((0, 2))
    if others:
        ends = compute_joint_intervals_of_mean_gains(
            gains, blocks, np.random.default_rng(INTERVAL_SEED)
        )

    ahead = dict(
        zip(
            others,
            np.column_stack([gains.mean(axis=0), ends]).tolist(),
            strict=True,
        )
    )
    scores = []
    for name, loss in losses.items():
        scores.append(
            CandidateScore(
                name,
                float(loss.mean()),
                float((loss - least).mean()),
                compute_clustered_standard_error_of_mean(loss - least, blocks),
                len(loss),
                *ahead.get(name, ()),
            )
        )

    return tuple(scores)


INTERVAL_SEED = 11
"""Of the intervals."""


def fit_calibration_model(
    name: str,
    answers: Floats,
    signs: Sequence[float],
    positive: Bools,
    judges: JudgePerConversation = None,
    rubrics: Sequence[str] | None = None,
    groups: Ints | None = None,
    changes: Mapping[str, object] | None = None,
) -> JudgedEstimator:
    """Return a candidate, or what the network begins as, fitted.

    Args:
        answers: Probabilities `[row, rubric, option]`.
        signs: `[rubric]`.
        positive: Thumbs `[row]`.
        judges: Who gave them `[row]`.
        rubrics: Ids of the rubrics, for its questionnaire; None: numbers.
        groups: What goes together in a candidate's own cross-validation `[row]`; None: each row is
            alone.
        changes: Parameters of its own.
    """
    ids = rubrics or [str(number) for number in range(len(signs))]
    questions = make_thumb_questionnaire(ids, answers.shape[2])
    if name == NETWORK_STARTING_MODEL_NAME:
        unfitted = make_network_start(signs)
    else:
        unfitted = make_candidates(signs)[name]

    model: JudgedEstimator = unfitted.set_params(**changes or {})
    return model.fit(
        flatten_answer_probabilities(answers),
        positive.astype(np.float64),
        judges,
        questions,
        None if groups is None else groups.tolist(),
    )


def make_thumb_questionnaire(
    rubrics: Sequence[str], options: int = LIKERT_OPTION_COUNT
) -> Questionnaire:
    """Make the questionnaire: rubrics with values from 0 to 10, and the thumb."""
    values = tuple(np.linspace(0.0, 10.0, options).tolist())
    scales = tuple(Scale(rubric, values) for rubric in rubrics)
    return Questionnaire(
        (*scales, Scale(THUMB_QUESTION_ID, (0.0, 1.0), asked=False)), THUMB_QUESTION_ID
    )


def predict_thumb_up_probability(
    model: JudgedEstimator,
    answers: Floats,
    judges: JudgePerConversation = None,
) -> Floats:
    """P(thumb up) `[row]` from probabilities `[row, rubric, option]`."""
    column: Floats = model.predict_proba(flatten_answer_probabilities(answers), judges)[:, 1]
    return column


def flatten_answer_probabilities(answers: Floats) -> Floats:
    """Reshape `[row, rubric, option]` to X, `[row, rubric × option]`."""
    return answers.reshape(len(answers), -1)
