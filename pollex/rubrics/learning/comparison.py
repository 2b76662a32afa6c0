"""The comparison of models of the probability, and the ones that are fitted by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pollex.conversations.conversation import Conversation
from pollex.rubrics.learning.choice import candidates, chooser
from pollex.rubrics.learning.material import Material
from pollex.rubrics.learning.thumbs import (
    compared,
    folds_of,
    grades_compared,
    model_of,
    rating_of,
    stored,
    uncompared,
)
from pollex.rubrics.learning.weigh import Candidates
from pollex.rubrics.thumb_model import ThumbModel


@dataclass(frozen=True)
class FittedThumbs:
    """The model of the probability, fitted on all training conversations.

    Attributes:
        crossfitted: By training conversation, P(thumb up) by a model and rubrics that did not see it.
    """

    model: ThumbModel
    crossfitted: Mapping[str, float]

    @classmethod
    def of(cls, material: Material, comparison: Mapping[str, Any]) -> FittedThumbs:
        """Fit the models that `compare` chose."""
        table, chosen, pool = material.table, material.chosen, candidates(material)
        seen = comparison["held_out"]
        answers = table.probabilities(pool.conversations, chosen)
        model = model_of(comparison["chosen"], answers, chosen, pool.conversations)
        if (graded := comparison.get("grades")) is not None:
            rows = with_graded(material, pool)
            model.rating = rating_of(graded, table.probabilities(rows, chosen), chosen, rows)
        return cls(model, {} if seen is None else dict(zip(comparison["conversations"], seen, strict=True)))

    def likelihoods(self, material: Material) -> dict[str, float]:
        """P(positive) by held-out conversation."""
        conversations = material.held_out
        if not conversations:
            return {}
        found = self.model.probability(material.table.probabilities(conversations, material.chosen))
        return dict(zip((c.id for c in conversations), found.tolist(), strict=True))


def compare(material: Material, selection: Mapping[str, Any]) -> dict[str, Any]:
    """Compare models of the probability by cross-validation on training conversations."""
    settings, pool = material.settings, candidates(material)
    if any(c.text_hash[:16] in material.learned_from for c in pool.conversations):
        why = "the rubrics were learned from these conversations, so models can't be compared on them: as before"
        unknown = {"grades": grades_compared(None, with_graded(material, pool), graded_fields(material), settings.seed)}
        return uncompared(material.model, why) | unknown | {"conversations": [c.id for c in pool.conversations]}
    rows = with_graded(material, pool)
    choose = chooser(material, pool, selection)
    parts = folds_of(choose, material.table.probabilities(rows, pool.rubrics), pool.rubrics, rows, settings.seed)
    advance, count = partial(material.progress.advance, "calibrate"), len(pool.conversations)
    thumbs = parts and [replace(fold, out=fold.out[:count], answers=fold.answers[:count]) for fold in parts]
    found = None if thumbs is None else compared(thumbs, pool.conversations, settings.probability, advance)
    grades = grades_compared(parts, rows, graded_fields(material), settings.seed)
    return (
        stored(found, settings.probability) | {"grades": grades} | {"conversations": [c.id for c in pool.conversations]}
    )


def with_graded(material: Material, pool: Candidates) -> list[Conversation]:
    """List the pool's training conversations, then those with a grade that is no thumb."""
    return [*pool.conversations, *material.table.judged(material.graded_training, pool.rubrics)]


def graded_fields(material: Material) -> list[str]:
    """Return the fields that may hold grades, the main one first."""
    return [material.logs.label_field, *material.settings.others_rated] if material.logs.label_field else []
