"""What a learning run came to: scores, rubrics that are not in the set, and notes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import flag_positive_labels
from pollex.conversations.splits import find_dependent_blocks, number_dependent_blocks
from pollex.measures.intervals import MIN_UNITS_FOR_INTERVAL, Figure
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.learning.crossfit import CROSSFIT_FOLDS
from pollex.rubrics.learning.material import Material
from pollex.rubrics.learning.measured import UnseenScores
from pollex.rubrics.learning.thumbs import FittedThumbs
from pollex.rubrics.records import DroppedRubric, RubricAlone
from pollex.rubrics.rubric import Rubric
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.worth import JUDGED_BY_IN_WORDS, REWORD_HINTS, is_rubric_nearly_constant
from pollex.selection.netsat import sum_rubric_values
from pollex.text import format_count


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
        means: By rubric of the set, its mean answer among positive and among negative
            conversations, 0 … 10; None if none of them has an answer.
        unextracted: By conversation, why no reasons could be extracted.
    """

    run: str
    rubric_set: RubricSet
    scores: tuple[LabelledScore, ...]
    means: dict[str, tuple[float | None, float | None]]
    unextracted: Mapping[str, Unanswered]


def iterate_labelled_scores(
    material: Material,
    fitted: FittedThumbs,
    unseen: UnseenScores,
) -> Iterator[LabelledScore]:
    """NetSAT of every labelled conversation, for plots: where folds measured it, by rubrics that did not see it."""
    # by conversation that was measured, its row in those figures
    table = material.table
    measured = {c.id: n for n, c in enumerate(unseen.conversations)}
    sides: dict[Literal["training", "held_out"], list[Conversation]] = {
        "training": [],
        "held_out": [],
    }
    # training conversations that folds measured count as held out
    sides["training"] = [c for c in material.training if c.id not in measured]
    measured_training = []
    for c in material.training:
        if c.id in measured:
            measured_training.append(c)
    sides["held_out"] = [*material.held_out, *measured_training]
    for side, conversations in sides.items():
        values, answered = table.matrix(conversations, material.chosen)
        complete = np.all(answered, axis=1).tolist()
        units = number_dependent_blocks(conversations).tolist()
        for c, row, scored, block in zip(conversations, values, complete, units, strict=True):
            failure = table.failures.get(c.id)
            positive = c.label is Label.POSITIVE
            place = measured.get(c.id)
            # by rubrics that did not see the conversation
            if place is not None:
                likely = float(unseen.probability[place])
                yield LabelledScore(
                    c.id,
                    side,
                    positive,
                    float(unseen.netsat[place]),
                    probability=likely,
                    block=block,
                )
            # by the set itself, where every rubric is answered
            elif scored:
                probability = fitted.crossfitted.get(c.id)
                yield LabelledScore(
                    c.id,
                    side,
                    positive,
                    float(sum_rubric_values(row[None])[0]),
                    probability=probability,
                    block=block,
                )
            else:
                # without all answers there is no score
                outcome = failure.outcome if failure else "incomplete"
                yield LabelledScore(
                    c.id,
                    side,
                    positive,
                    None,
                    outcome,
                    block=block,
                )


def list_held_out_figures(rubrics: RubricSet) -> dict[str, object]:
    """Return the figures of held-out conversations as JSON values; empty where nothing was held out."""
    if rubrics.held_out:
        held_out = vars(rubrics.held_out)
    else:
        held_out = {}

    figures = {}
    for name, figure in held_out.items():
        figures[name] = vars(figure) if isinstance(figure, Figure) else figure
    return figures


def compute_mean_answers(material: Material) -> dict[str, tuple[float | None, float | None]]:
    """Return each rubric's mean answer among positive and among negative conversations."""
    values = material.table.values

    def mean(rubric_id: str, label: Label) -> float | None:
        # unanswered ones have no part in the mean
        present = []
        for conversation in material.training:
            if conversation.label is label:
                answer = values.get(conversation.id, {}).get(rubric_id)
                if answer is not None:
                    present.append(answer)
        if present:
            return sum(present) / len(present)
        return None

    mean_answers: dict[str, tuple[float | None, float | None]] = {}
    for rubric in material.chosen:
        mean_answers[rubric.id] = (mean(rubric.id, Label.POSITIVE), mean(rubric.id, Label.NEGATIVE))

    return mean_answers


def list_dropped_rubrics(material: Material, selection: dict[str, Any]) -> list[DroppedRubric]:
    # by id, what was written and what was left to choose from
    """List every rubric of the pool that is not in the set, duplicates first."""
    pool = {rubric.id: rubric for rubrics in material.pool.values() for rubric in rubrics}
    deduplicated = {rubric.id: rubric for rubric in material.kept}
    by_id = pool | deduplicated
    texts = {id_: rubric.text for id_, rubric in by_id.items()}

    def out(rubric: Rubric, reason: str, **more: object) -> DroppedRubric:
        about = {
            "id": rubric.id,
            "text": rubric.text,
            "polarity": rubric.polarity,
            "support": len(rubric.reason_ids),
        }
        return DroppedRubric(**about, reason=reason, **more)

    # what was merged away, what was reworded, and last what the policy left out
    duplicates = []
    for id_, into in material.merged.items():
        if into in texts:  # people may have taken it out
            duplicates.append(
                out(
                    pool[id_],
                    f"says the same as “{texts[into]}”",
                    duplicate_of=into,
                )
            )

    better = []
    for id_, new in material.reworded.items():
        if id_ in pool and new in texts:
            better.append(
                out(
                    pool[id_],
                    f"is in better words: “{texts[new]}”",
                    duplicate_of=new,
                )
            )

    dropped = []
    for id_, drop in selection["dropped"].items():
        dropped.append(
            out(
                deduplicated[id_],
                explain_dropped_rubric(drop, texts),
                loss=drop["loss"],
                stability=drop["stability"],
            )
        )
    return [*duplicates, *better, *dropped]


def explain_dropped_rubric(drop: dict[str, Any], texts: dict[str, str]) -> str:
    """Describe why a rubric was dropped."""
    if "why" in drop:
        return str(drop["why"])
    if "answered" in drop:
        return f"answered on only {100 * drop['answered']:.0f} % of the training conversations"
    if drop["beaten_by"] is None:
        return "the budget of its kind is 0"
    return f"the set was better with “{texts[drop['beaten_by']]}”"


NO_EVENTS_NOTE = "No rubric is an event of the domain"
"""How the note on a language begins that events are not read in."""

MIN_HELD_OUT_CONVERSATIONS_PER_CLASS = 50
"""Held-out conversations of the smaller class below which a figure is called noisy."""


def list_caveats_about_figures(
    material: Material,
    unseen: UnseenScores,
    silent: int,
    language: Sequence[str],
) -> list[str]:
    """List caveats about the figures.

    Args:
        unseen: The conversations in the figures.
        silent: Training conversations that gave no reasons.
        language: What the log lacks because of its language.
    """
    notes = [*material.logs.lost_labels, *material.logs.note_on_repeats]
    held_out = len(material.held_out)
    truth = flag_positive_labels(unseen.conversations)
    # what the figures don't cover
    if not unseen.folds and (left_out := held_out - len(truth)):
        notes.append(
            f"Left out of all figures: {left_out} of "
            f"{format_count(held_out, 'held-out conversation')}, because some rubric "
            "has no answer there, so that there is no score."
        )

    # no figures at all, or figures of few conversations
    if not (held_out or unseen.folds):
        notes.append("Nothing was held out, so there are no figures for new conversations.")
        notes.append(
            f"No score is called confident: that takes labels of {CROSSFIT_FOLDS} or more units of each class."
        )
    elif (
        len(truth)
        and (smaller := int(min(truth.sum(), (~truth).sum())))
        < MIN_HELD_OUT_CONVERSATIONS_PER_CLASS
    ):
        notes.append(
            f"The smaller class has {format_count(smaller, 'measured conversation')}: figures vary a lot from split to "
            "split, so read the intervals rather than the figures; a figure without an interval says little."
        )

    # conversations that aren't independent of each other
    labelled = (*material.training, *material.held_out)
    if (apart := len(find_dependent_blocks(labelled))) < len(labelled):
        notes.append(
            "Conversations of one group (for example, one user) or with the same text count as one: the "
            f"{len(labelled)} labeled conversations count as {apart}. Intervals account for this, and need at least "
            f"{MIN_UNITS_FOR_INTERVAL}. A window with a guarantee does not: it promises too much "
            "if conversations of a group are alike."
        )

    # a budget that the pool couldn't fill, as far as it is one and no maximum
    fixed = material.settings.budget is not None and not (material.by_evidence or material.by_both)
    budget = material.settings.limits if fixed else (0, 0)  # else it is a maximum
    n_sat = sum(r.polarity == "sat" for r in material.chosen)
    n_dsat = sum(r.polarity == "dsat" for r in material.chosen)
    if n_sat < budget[0] or n_dsat < budget[1]:
        notes.append(
            f"The pool had fewer rubrics than the budget: {n_sat} SAT and {n_dsat} DSAT were chosen."
        )

    notes += language
    if failed := len(material.table.failures):
        notes.append(
            f"{format_count(failed, 'conversation lacks', 'conversations lack')} an answer; "
            "`pollex trace` of this run says why."
        )

    if silent:
        notes.append(
            f"{format_count(silent, 'training conversation')} gave no reasons; `pollex trace` of this run says why."
        )

    return notes


def list_nearly_constant_handwritten_rubrics(
    chosen: Sequence[Rubric], alone: Mapping[str, RubricAlone]
) -> list[str]:
    """List handwritten rubrics that are nearly always answered alike."""
    rubrics: list[str] = []
    for rubric in chosen:
        if not rubric.reason_ids and is_rubric_nearly_constant(figures := alone[rubric.id]):
            rubrics.append(
                f"“{rubric.text}” is answered “{figures.commonest}” in "
                f"{figures.share.value:.0%} of {figures.share.n} training "
                f"conversations (judged by {JUDGED_BY_IN_WORDS[figures.by]}): {REWORD_HINTS[figures.by]}."
            )

    return rubrics


REASONS_LEFT_OUT_NOTE_WORDS = "rubrics are the model's: "
"""Words of the note on a model whose reasons were left out."""


def describe_refused_rubrics(refused: Mapping[str, int]) -> list[str]:
    """List refused rubrics, one line for each cause."""
    refusals: list[str] = []
    for cause, n in sorted(refused.items()):
        refusals.append(
            f"{format_count(n, 'rubric text was', 'rubric texts were')} refused: {cause}"
        )
    return refusals
