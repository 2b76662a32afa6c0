"""Learning tone: a logistic model of all signals of form; no conversation's label teaches its own tone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import flag_positive_labels
from pollex.conversations.splits import number_dependent_blocks
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.intervals import Figure
from pollex.rubrics.learning.crossfit import list_conversations_with_thumb
from pollex.rubrics.learning.material import Material
from pollex.rubrics.starter import fit_starter_weights, standardize_values
from pollex.rubrics.tone import (
    MAX_NAMED_FEATURES,
    MAX_STANDARDIZED_VALUE,
    ToneRecord,
    ToneScale,
    make_tone_answers,
)
from pollex.selection.losses import MAX_EVAL_DIFFERENCE

if TYPE_CHECKING:
    from pollex.calibration.thumbs import Fold

TONE_FOLDS = 5
TONE_INVERSE_REGULARIZATION = 0.01
"""Inverse strength: some 200 features stand against a few hundred labels."""

MIN_TONE_FEATURE_DEVIATION = 1e-9


def fit_logistic_model_of_signals(features: Floats, positive: Bools) -> tuple[Floats, float]:
    """Fit a logistic model of standardized features, balanced classes: slopes `[feature]` and intercept of raw ones."""
    from sklearn.linear_model import LogisticRegression  # a second, needed by `learn` alone

    # features of all sizes are standardized; a constant one stays 0
    spread = features.std(axis=0)
    middle = features.mean(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    model = LogisticRegression(
        C=TONE_INVERSE_REGULARIZATION, class_weight="balanced", max_iter=2000
    )
    model.fit((features - middle) / scale, positive)
    # back to raw features, so that scoring needs no mean and no spread
    slopes = np.asarray(model.coef_[0] / scale, dtype=np.float64)

    return slopes, float(model.intercept_[0] - middle @ slopes)


@dataclass(frozen=True, eq=False)
class FittedTone:
    """Tone, fitted on some conversations.

    Attributes:
        scale: Of all of them.
        own: Tone of each of them by what was fitted without it, by id.
    """

    scale: ToneScale
    own: Mapping[str, float]

    def of(self, material: Material, conversations: Sequence[Conversation]) -> Floats:
        """Return the tone of conversations `[conversation]`, by what their labels did not teach."""
        tones = self.scale.tone(
            measure_tone_features_of_conversations(material, conversations)
        ).tolist()
        final_tones = []
        for conversation, tone in zip(conversations, tones, strict=True):
            final_tones.append(self.own.get(conversation.id, tone))
        return np.array(final_tones)

    def beside(
        self,
        answers: Floats,
        material: Material,
        conversations: Sequence[Conversation],
    ) -> Floats:
        """Return answers `[conversation, rubric, option]` with tone as one more."""
        tones = make_tone_answers(self.of(material, conversations), answers.shape[2])
        return np.concatenate([answers, tones[:, None]], axis=1)


def measure_tone_features_of_conversations(
    material: Material, conversations: Sequence[Conversation]
) -> Floats:
    """Measure the form of conversations `[conversation, feature]`, each once in a process."""
    assert material.form is not None, "only called where there is something to measure"
    # by text: what was measured before is not measured again
    by_text: dict[str, Floats] = material.once.setdefault("form", {})
    new = [conversation for conversation in conversations if conversation.text_hash not in by_text]
    by_text |= zip(
        [conversation.text_hash for conversation in new],
        material.form.measure(new),
        strict=True,
    )

    return np.array([by_text[conversation.text_hash] for conversation in conversations]).reshape(
        len(conversations),
        -1,
    )


def fit_tone_with_cross_fitting(
    features: Floats,
    positive: Bools,
    blocks: Ints,
    seed: int,
) -> tuple[ToneScale, Floats] | None:
    """Fit tone, and once more without each fold; None where a class has too few blocks.

    Returns:
        Tone for others, and tone of each conversation by what was fitted without its fold
        `[conversation]`.
    """
    fold = assign_blocks_to_folds(positive, blocks, seed)
    # without any fold both kinds of thumbs must be left
    rests = [positive[fold != number] for number in range(TONE_FOLDS)]
    if any(rest.all() or not rest.any() for rest in rests):
        return None

    # log-odds by models that did not see the conversation
    odds = np.zeros(len(positive))
    for number in range(TONE_FOLDS):
        out = fold == number
        slopes, intercept = fit_logistic_model_of_signals(features[~out], positive[~out])
        odds[out] = features[out] @ slopes + intercept

    # One scale for all: what is far for a conversation that taught it not is far for a new one.
    middle = float(odds.mean())
    spread = max(float(odds.std()), MIN_TONE_FEATURE_DEVIATION)
    slopes, intercept = fit_logistic_model_of_signals(features, positive)
    scale = ToneScale(slopes / spread, (intercept - middle) / spread)
    return scale, np.clip((odds - middle) / spread, -MAX_STANDARDIZED_VALUE, MAX_STANDARDIZED_VALUE)


def assign_blocks_to_folds(positive: Bools, blocks: Ints, seed: int) -> Ints:
    """Deal whole blocks to folds `[conversation]`, those with a thumb down first, so that each fold has its share."""
    rng = np.random.default_rng([seed, 12])
    names = rng.permutation(np.unique(blocks))
    down = np.isin(names, blocks[~positive])
    order = [*names[down].tolist(), *names[~down].tolist()]
    # in turn: neighbours in the order go to different folds
    place = {}
    for number, name in enumerate(order):
        place[name] = number % TONE_FOLDS

    return np.array([place[block] for block in blocks.tolist()], dtype=np.int64)


def fit_tone_of_run(material: Material, conversations: Sequence[Conversation]) -> FittedTone | None:
    """Fit tone on the conversations that have a thumb; None where there are too few."""
    thumbs = list_conversations_with_thumb(conversations)
    features = measure_tone_features_of_conversations(material, thumbs)
    up = flag_positive_labels(thumbs)
    fitted = fit_tone_with_cross_fitting(
        features, up, number_dependent_blocks(thumbs), material.settings.seed
    )
    if fitted is None:
        return None

    return FittedTone(
        fitted[0],
        dict(zip([conversation.id for conversation in thumbs], fitted[1].tolist(), strict=True)),
    )


def add_tone_answer_to_fold(
    material: Material,
    fold: Fold,
    rows: Sequence[Conversation],
    honest: Sequence[float] | None,
) -> Fold | None:
    """Return a fold with tone as the last answer; None where there are too few to learn it from.

    Args:
        honest: NetSAT of the conversations with a thumb, by rubrics that did not see them; None
            where there is none.
    """
    training = []
    for conversation, out in zip(rows, fold.out.tolist(), strict=True):
        if not out:
            training.append(conversation)

    tone = fit_tone_of_run(material, training)
    if tone is None:
        return None

    answers = tone.beside(fold.answers, material, rows)
    weight = fit_tone_weight(
        answers,
        fold.signs,
        list_conversations_with_thumb(rows),
        ~fold.out,
        honest,
    )
    return replace(fold, signs=[*fold.signs, weight], answers=answers)


def fit_tone_weight(
    answers: Floats,
    signs: Sequence[float],
    thumbs: Sequence[Conversation],
    in_training: Bools,
    honest: Sequence[float] | None,
) -> float:
    """Return what a point of tone counts for beside a point of a rubric.

    Args:
        answers: With tone as the last `[conversation, rubric, option]`, of those with a thumb
            first.
        thumbs: Conversations with a thumb.
        in_training: Those whose labels are looked at `[conversation]`.
        honest: See `add_tone_answer_to_fold`.
    """
    # the expected answer, of 10; an unanswered one counts as the middle
    values = np.nan_to_num(
        answers[: len(thumbs)] @ np.linspace(0, MAX_EVAL_DIFFERENCE, answers.shape[2]),
        nan=MAX_EVAL_DIFFERENCE / 2,
    )
    tone = values[:, -1]
    sums = values[:, :-1] @ np.array(signs)
    rows = in_training[: len(thumbs)]
    if honest is None:
        netsats = sums
    else:
        netsats = np.array(honest)

    # logistic weights of both sums, each with spread 1
    first, second = fit_starter_weights(
        standardize_values(netsats)[rows],
        standardize_values(tone)[rows],
        flag_positive_labels(thumbs)[rows],
    )
    # from weights of standardized sums to weights of points
    ratio = float((sums.std() or 1.0) / (tone.std() or 1.0))
    return max(second, 0.0) / max(first, MIN_RUBRIC_WEIGHT_TO_COMPARE_TONE) * ratio


MIN_RUBRIC_WEIGHT_TO_COMPARE_TONE = 0.1
"""Of the weight that tone's is set against: a set whose sum says nothing is no reason for an endless weight."""


def make_tone_record(
    material: Material,
    tone: FittedTone | None,
    alone: Mapping[str, Any] | None,
) -> ToneRecord | None:
    """Return the record of a set's tone; None where it was not looked at.

    Args:
        alone: See `thumbs.compare_thumb_models`.
    """
    if alone is None or material.form is None:
        return None

    adds = Figure(**alone["adds"])
    if tone is None or not alone["weight"]:
        return ToneRecord(weight=0.0, signals=(), adds=adds)

    # how far a signal moves log-odds: slopes times spreads of its features, added up
    training = measure_tone_features_of_conversations(
        material, list_conversations_with_thumb(material.training)
    )
    pulls = (
        np.abs(tone.scale.slopes * training.std(axis=0))
        .reshape(len(material.form.signals), -1)
        .sum(axis=1)
    )
    # deeds and outcomes count in it, too, and are named by the rubrics that tell them
    strongest = []
    for place in np.argsort(-pulls, kind="stable").tolist():
        if material.form.sounds[place]:
            strongest.append(material.form.signals[place])
    signals = tuple(strongest[:MAX_NAMED_FEATURES])

    return ToneRecord(
        weight=alone["weight"],
        signals=signals,
        adds=adds,
        learned=tone.scale.to_json(),
    )
