"""What a learning run came to."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.splits import block_ids
from pollex.measures.intervals import Figure
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.learning.comparison import FittedThumbs
from pollex.rubrics.learning.material import Material
from pollex.rubrics.learning.measured import Unseen
from pollex.rubrics.rubric_set import RubricSet


@dataclass(frozen=True)
class LabelledScore:
    """A labeled conversation's NetSAT in a learning run; None if missing, as `outcome` says.

    Attributes:
        probability: P(positive), by a model that did not see the conversation; None if missing.
        block: Number shared by dependent conversations of one side; None if independent.
    """

    conversation_id: str
    side: Literal["training", "held_out"]
    positive: bool
    netsat: float | None
    outcome: str = "scored"
    probability: float | None = None
    block: int | None = None


@dataclass(frozen=True)
class Learned:
    """The result of a learning run.

    Attributes:
        means: By rubric of the set, its mean answer among positive and among negative conversations, 0 … 10; None if
            none of them has an answer.
        unextracted: By conversation, why no reasons could be extracted.
    """

    run: str
    rubric_set: RubricSet
    scores: tuple[LabelledScore, ...]
    means: dict[str, tuple[float | None, float | None]]
    unextracted: Mapping[str, Unanswered]


def labelled_scores(material: Material, fitted: FittedThumbs, unseen: Unseen) -> Iterator[LabelledScore]:
    """NetSAT of every labelled conversation, for plots: where folds measured it, by rubrics that did not see it."""
    table, measured = material.table, {c.id: n for n, c in enumerate(unseen.conversations)}
    sides: dict[Literal["training", "held_out"], list[Conversation]] = {"training": [], "held_out": []}
    sides["training"] = [c for c in material.training if c.id not in measured]
    sides["held_out"] = [*material.held_out, *(c for c in material.training if c.id in measured)]
    for side, conversations in sides.items():
        values, answered = table.matrix(conversations, material.chosen)
        complete, blocks = np.all(answered, axis=1).tolist(), block_ids(conversations).tolist()
        for c, row, scored, block in zip(conversations, values, complete, blocks, strict=True):
            failure, positive, place = table.failures.get(c.id), c.label is Label.POSITIVE, measured.get(c.id)
            if place is not None:
                likely = float(unseen.probability[place])
                yield LabelledScore(c.id, side, positive, float(unseen.netsat[place]), probability=likely, block=block)
            elif scored:
                known = fitted.crossfitted.get(c.id)
                yield LabelledScore(c.id, side, positive, float(row.sum()), probability=known, block=block)
            else:
                outcome = failure.outcome if failure else "incomplete"
                yield LabelledScore(c.id, side, positive, None, outcome, block=block)


def figures_of(rubrics: RubricSet) -> dict[str, Any]:
    """Return the figures of held-out conversations as JSON values; empty where nothing was held out."""
    held_out = vars(rubrics.held_out) if rubrics.held_out else {}
    return {name: vars(one) if isinstance(one, Figure) else one for name, one in held_out.items()}


def mean_answers(material: Material) -> dict[str, tuple[float | None, float | None]]:
    """Return each rubric's mean answer among positive and among negative conversations."""
    values = material.table.values

    def mean(rubric_id: str, label: Label) -> float | None:
        answers = (values.get(c.id, {}).get(rubric_id) for c in material.training if c.label is label)
        given = [value for value in answers if value is not None]
        return sum(given) / len(given) if given else None

    return {r.id: (mean(r.id, Label.POSITIVE), mean(r.id, Label.NEGATIVE)) for r in material.chosen}
