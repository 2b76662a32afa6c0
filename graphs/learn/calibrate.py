"""Calibrate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.splits import block_ids, folds
from pollex.errors import BadLabels
from pollex.graphs.learn.select import both_lists, kinds_of
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.thumb_model import FOLDS, Floats, ThumbModel, judges_of
from pollex.selection.policies import select

if TYPE_CHECKING:
    from pollex.calibration.thumbs import ModelComparison


def compared(
    values: Floats,
    answers: Floats,
    rubrics: Sequence[Rubric],
    training: Sequence[Conversation],
    budget: tuple[int, int],
    alpha: float,
    policy: str,
    seed: int,
    progress: Callable[[], None],
) -> ModelComparison | None:
    """Compare models of the probability by cross-validation, with rubrics chosen without each fold.

    Args:
        values: Terms of NetSAT `[conversation, rubric]`, of the whole pool.
        answers: Probabilities `[conversation, rubric, option]`, of the whole pool.
        progress: Called after each fold.

    Returns:
        None if there are too few conversations for folds.
    """
    from pollex.calibration.thumbs import Fold, compare_models

    positive = np.array([c.label is Label.POSITIVE for c in training], dtype=bool)
    sat, ids = np.array([rubric.polarity == "sat" for rubric in rubrics]), [rubric.id for rubric in rubrics]
    try:
        dealt = folds(training, FOLDS, seed)
    except BadLabels:
        return None
    parts = []
    for number in range(FOLDS):
        out, rng = dealt == number, np.random.default_rng([seed, 3, number])
        chosen = select(values[~out], positive[~out], kinds_of(rubrics), ids, both_lists(budget), alpha, rng, policy)
        places = [step.index for step in chosen.steps]
        parts.append(Fold(out, np.where(sat[places], 1.0, -1.0).tolist(), answers[:, places]))
    return compare_models(parts, positive, judges_of(training), progress, block_ids(training))


def model_of(name: str, answers: Floats, rubrics: Sequence[Rubric], training: Sequence[Conversation]) -> ThumbModel:
    """Fit a candidate on all training conversations.

    Args:
        answers: Probabilities `[conversation, rubric, option]`, of the chosen rubrics.
    """
    from pollex.calibration.thumbs import fitted

    signs = [1.0 if rubric.polarity == "sat" else -1.0 for rubric in rubrics]
    positive = np.array([c.label is Label.POSITIVE for c in training], dtype=bool)
    ids = [rubric.id for rubric in rubrics]
    return ThumbModel(ids, fitted(name, answers, signs, positive, judges_of(training), ids), answers.shape[2])


def stored(found: ModelComparison | None) -> dict[str, Any]:
    """Return the comparison as JSON values."""
    if found is None:
        return uncompared()
    rows = [vars(score) for score in found.scores]
    return {"chosen": found.chosen, "compared": rows, "held_out": found.held_out.tolist()}


def uncompared(model: str | None = None) -> dict[str, Any]:
    """Return the record without a comparison.

    Args:
        model: Name of the model to take; the simplest one if None or unknown.
    """
    from pollex.calibration.thumbs import PLAIN, thumb_models

    return {"chosen": model if model in thumb_models(()) else PLAIN, "compared": [], "held_out": None}
