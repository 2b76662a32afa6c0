"""The comparison of models of the probability, and the ones that are fitted by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from pollex.calibration.candidates import candidate
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import positives
from pollex.conversations.splits import block_ids
from pollex.measures.arrays import Bools, Floats
from pollex.rubrics.learning.choice import candidates, chosen_by
from pollex.rubrics.learning.crossfit import FOLDS, cross_fit, dealt, held_out_folds, with_graded, with_thumbs
from pollex.rubrics.learning.material import Material
from pollex.rubrics.learning.thumbs import (
    grades_compared,
    rating_of,
    signs_of,
    stored,
    uncompared,
)
from pollex.rubrics.learning.weigh import Candidates
from pollex.rubrics.starter import standard, weigh
from pollex.rubrics.thumb_model import ThumbModel, judges_of

if TYPE_CHECKING:
    from pollex.calibration.thumbs import Fold


@dataclass(frozen=True)
class FittedThumbs:
    """The models of thumbs and of grades, fitted on all answers that there are.

    Attributes:
        crossfitted: By conversation, P(thumb up) by a model and rubrics that did not see it.
        grades: By held-out conversation, the probability of each grade, likewise; empty where labels are no grades.
    """

    model: ThumbModel
    crossfitted: Mapping[str, float]
    grades: Mapping[str, Floats]

    @classmethod
    def of(cls, material: Material, comparison: Mapping[str, Any]) -> FittedThumbs:
        """Fit the models that `compare` chose, and once more without each fold of what was held out."""
        pool, seen = candidates(material), comparison["held_out"]
        likely, grades = dict[str, float](), dict[str, Floats]()
        taught, (held_out, fold) = with_graded(material, pool), held_out_folds(material)
        for number in np.unique(fold):
            known, out = (list(compress(held_out, rows)) for rows in (fold != number, fold == number))
            part, ids = _fitted(material, comparison, [*taught, *known]), [one.id for one in out]
            likely |= zip(ids, part.probability(material.answers(out)).tolist(), strict=True)
            grades |= zip(ids, part.grades(material.answers(out)), strict=True) if part.rating else ()
        if seen is not None:
            likely |= zip(comparison["conversations"], seen, strict=True)
        return cls(_fitted(material, comparison, [*taught, *held_out]), likely, grades)


def _fitted(material: Material, comparison: Mapping[str, Any], rows: Sequence[Conversation]) -> ThumbModel:
    """Fit the chosen models on some conversations, that of thumbs on those that have one."""
    from pollex.calibration.thumbs import fitted  # scikit-learn comes with it, and takes a second to import

    rubrics, (own, other) = material.in_order, comparison["weights"]
    signs = signs_of(rubrics) * np.where(np.arange(len(rubrics)) < len(material.chosen), own, other)
    thumbs, ids = with_thumbs(rows), [rubric.id for rubric in rubrics]
    answers, about = material.answers(thumbs), (judges_of(thumbs), ids, block_ids(thumbs))
    own_model = fitted(comparison["chosen"], answers, signs.tolist(), positives(thumbs), *about)
    model = ThumbModel(ids, own_model, answers.shape[2])
    if (graded := comparison.get("grades")) is not None:
        model.rating = rating_of(graded, material.answers(rows), rubrics, signs, rows)
    return model


def compare(material: Material, selection: Mapping[str, Any]) -> dict[str, Any]:
    """Compare models of the probability by cross-validation on training conversations."""
    from pollex.calibration.thumbs import compare_models  # scikit-learn comes with it, and takes a second to import

    settings, pool = material.settings, candidates(material)
    about: dict[str, Any] = {"conversations": [c.id for c in pool.conversations]}
    if any(c.text_hash[:16] in material.learned_from for c in pool.conversations):
        why = "the rubrics were learned from these conversations, so models can't be compared on them: as before"
        unknown = {"grades": grades_compared(None, with_graded(material, pool), graded_fields(material), settings.seed)}
        about["weights"] = material.starter.record.weights if material.starter else (1.0, 1.0)
        return uncompared(material.model, why) | unknown | about
    rows = with_graded(material, pool)
    if material.by_evidence:
        parts = [part.fold for part in cross_fit(material, pool).parts] or None
    else:
        parts = without_each_fold(material, pool, selection["alpha"], rows)
    if parts and material.starter is not None:
        parts = [with_starter(material, pool, selection, fold, rows) for fold in parts]
    advance, count = partial(material.progress.advance, "calibrate"), len(pool.conversations)
    thumbs = parts and [replace(fold, out=fold.out[:count], answers=fold.answers[:count]) for fold in parts]
    about_rows = (pool.labels, judges_of(pool.conversations), advance, block_ids(pool.conversations))
    found = compare_models(thumbs, *about_rows, candidate(settings.probability)) if thumbs else None
    grades = grades_compared(parts, rows, graded_fields(material), settings.seed)
    about["weights"] = weights_of(material, pool, selection)
    return stored(found, settings.probability) | {"grades": grades} | about


def without_each_fold(
    material: Material, pool: Candidates, alpha: float, rows: Sequence[Conversation]
) -> list[Fold] | None:
    """Deal folds, and choose rubrics without each by those with thumbs; None if there are too few conversations."""
    from pollex.calibration.thumbs import Fold  # scikit-learn comes with it, and takes a second to import

    rubrics, parts = pool.rubrics, []
    if (fold := dealt(material, rows)) is None:
        return None
    answers, signs = material.table.probabilities(rows, rubrics), signs_of(rubrics)
    for number in range(FOLDS):
        out, rng = fold == number, np.random.default_rng([material.settings.seed, 3, number])
        chosen = chosen_by(material, pool, ~out[: len(pool.labels)], alpha, rng).chosen
        places = sorted(chosen, key=lambda place: rubrics[place].id)
        parts.append(Fold(out, signs[places].tolist(), answers[:, places]))
    return parts


def weights_of(
    material: Material, pool: Candidates, selection: Mapping[str, Any], known: Bools | None = None
) -> tuple[float, float]:
    """Return what the rubrics of the set and of its starter count for, so that NetSATs weigh as labels let them.

    Args:
        known: Training conversations whose labels are looked at; None for all.
    """
    if material.starter is None:
        return 1.0, 1.0
    some = np.ones(len(pool.conversations), dtype=bool) if known is None else known
    other, positive = material.starter.netsats(pool.conversations), positives(pool.conversations)
    # Without folds the set has seen these labels: beside its own NetSAT the starter's would seem to say nothing.
    honest = selection["held_out_scores"]
    own = np.zeros(len(other)) if honest is None else np.array(honest)
    spread = own if honest is not None else material.table.matrix(pool.conversations, material.chosen)[0].sum(axis=1)
    first, second = weigh(standard(own)[some], standard(other)[some], positive[some])
    return first / (spread.std() or 1.0), second / (other.std() or 1.0)


def with_starter(
    material: Material, pool: Candidates, selection: Mapping[str, Any], fold: Fold, rows: Sequence[Conversation]
) -> Fold:
    """Return a fold with the starter's answers beside those of the rubrics that were chosen without it."""
    assert material.starter is not None, "only called where there is one"
    own, other = weights_of(material, pool, selection, ~fold.out[: len(pool.conversations)])
    signs = [*(own * sign for sign in fold.signs), *(other * signs_of(material.starter.record.rubrics)).tolist()]
    return replace(fold, signs=signs, answers=np.concatenate([fold.answers, material.of_starter(rows)], axis=1))


def graded_fields(material: Material) -> list[str]:
    """Return the fields that may hold grades, the main one first."""
    return [material.logs.label_field, *material.settings.others_rated] if material.logs.label_field else []
