"""Models of thumbs and of grades: compared by cross-validation, then fitted on all answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from pollex.calibration.candidates import (
    CALIBRATION_NETWORK_NAME,
    LEAST_LOG_LOSS_CHOICE_NAME,
    NETWORK_STARTING_MODEL_NAME,
    find_calibration_model_name,
)
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs, flag_positive_labels
from pollex.conversations.splits import number_dependent_blocks, split_conversations
from pollex.errors import WrongUse
from pollex.measures.arrays import Bools, Floats
from pollex.measures.intervals import Figure
from pollex.rubrics.learning.choice import (
    choose_rubrics_on_some_conversations,
    list_rubrics_to_choose_from,
)
from pollex.rubrics.learning.crossfit import (
    CROSSFIT_FOLDS,
    Candidates,
    assign_conversations_to_folds,
    assign_held_out_conversations_to_folds,
    cross_fit,
    list_conversations_with_thumb,
    list_training_and_graded_conversations,
)
from pollex.rubrics.learning.material import Material
from pollex.rubrics.learning.tone import (
    FittedTone,
    add_tone_answer_to_fold,
    fit_tone_of_run,
    make_tone_record,
)
from pollex.rubrics.rubric import TONE_SOURCE
from pollex.rubrics.score import ThumbModel, list_annotator_of_each_conversation
from pollex.rubrics.starter import fit_starter_weights, standardize_values
from pollex.rubrics.tone import ToneRecord
from pollex.selection.netsat import sum_rubric_values

if TYPE_CHECKING:
    from pollex.calibration.estimator import JudgedEstimator
    from pollex.calibration.questionnaire import Scale
    from pollex.calibration.thumbs import Fold, ModelComparison

MIN_DISTINCT_GRADES_OF_RATING = 3
"""Of two different grades the labels are thumbs, and a value between them is none."""


def collect_grades_of_conversations(
    conversations: Sequence[Conversation], names: Sequence[str]
) -> tuple[Floats, list[Scale]]:
    """Return the grades that people gave `[conversation, question]`, NaN where none, and the questions' scales.

    Args:
        names: Fields of the log; the first is the main one. Without grades in that there are no
            questions.
    """
    from pollex.calibration.grades import make_grade_scale, round_grades_if_too_many

    grade_columns = []
    scales = []
    for name in names:
        grades = np.array(
            [_get_grade(conversation, name) for conversation in conversations],
            dtype=np.float64,
        )
        scale = make_grade_scale(name, grades)
        # the main question needs three different grades; with two its labels are thumbs
        if scale is not None and (
            name != names[0] or len(scale.values) >= MIN_DISTINCT_GRADES_OF_RATING
        ):
            grade_columns.append(round_grades_if_too_many(grades))
            scales.append(scale)
        elif name == names[0]:
            # without grades of the main question there is nothing that others could help
            break

    return np.stack(grade_columns, axis=1) if grade_columns else np.zeros(
        (len(conversations), 0)
    ), scales


def collect_grades_on_scales(
    comparison: Mapping[str, Any], conversations: Sequence[Conversation]
) -> tuple[Floats, list[Scale]]:
    """Return grades on the scales that models were compared on; NaN off them. See `collect_grades_of_conversations`."""
    from pollex.calibration.questionnaire import Scale

    scales = []
    for name, values in comparison["scales"].items():
        scales.append(Scale(name, tuple(values), asked=False))

    grade_rows = []
    for conversation in conversations:
        grade_rows.append([_get_grade(conversation, scale.question) for scale in scales])
    grades = np.array(grade_rows)
    grades = grades.reshape(len(conversations), len(scales))
    # fractions become whole grades; what is then off the scale is none
    for column, scale in zip(grades.T, scales, strict=True):
        column[:] = np.where(
            np.isin(column, scale.values),
            column,
            np.round(column),
        )
        column[~np.isin(column, scale.values)] = np.nan

    return grades, scales


def require_learnable_rated_questions(logs: Logs, others: Sequence[str]) -> None:
    """Refuse other rated questions that can't be learned.

    Args:
        others: Fields of the log.

    Raises:
        WrongUse: The labels are no grades, or one of these fields holds none.
    """
    # the main question comes first
    names = [logs.label_field or "the label", *others]
    graded_fields = {
        scale.question for scale in collect_grades_of_conversations(list(logs), names)[1]
    }
    if missing := [name for name in names if name not in graded_fields]:
        hint = "name a field of grades by --label-field, and others by --also"
        raise WrongUse(
            f"{missing[0]!r} holds no two different grades to learn",
            hint=hint,
            option="also",
        )


def describe_use_of_label_grades(logs: Logs) -> str:
    """Say what becomes of the label's grades; empty where they are thumbs."""
    # scikit-learn comes with it, and takes a second to import
    from pollex.calibration.grades import MAX_DISTINCT_GRADES, round_grades_if_too_many

    if not logs.label_field:
        return ""
    if graded := list_conversations_graded_between_thumbs(logs):
        return f"grades are learned beside thumbs, those of {len(graded)} without a thumb, too"

    # more levels than a scale may have are not learned, and the reader is told
    grades = np.array([_get_grade(conversation, logs.label_field) for conversation in logs])
    levels = len(np.unique(round_grades_if_too_many(grades)[~np.isnan(grades)]))
    hint = f"thumbs alone are learned; for grades, round them to {MAX_DISTINCT_GRADES} or fewer"
    if levels > MAX_DISTINCT_GRADES:
        return f"{logs.label_field} holds {levels} different grades: {hint}"
    return ""


def list_conversations_graded_between_thumbs(logs: Logs) -> tuple[Conversation, ...]:
    """Return conversations whose grade is neither a thumb up nor one down, each text of an annotator once.

    Models of the grades are fitted to them as well; nothing else is.
    """
    _, scales = collect_grades_of_conversations(
        logs.learnable,
        [logs.label_field] if logs.label_field else [],
    )
    if not scales:
        return ()

    # strictly between the ends of the scale
    low = scales[0].values[0]
    high = scales[0].values[-1]
    between: dict[tuple[str, str | None], Conversation] = {}
    for conversation in logs:
        if (
            conversation.label is Label.NONE
            and not conversation.not_scorable
            and low < _get_grade(conversation, logs.label_field) < high
        ):
            # the first of equal texts stays
            between.setdefault((conversation.text_hash, conversation.judge), conversation)

    return tuple(between.values())


@dataclass(frozen=True, slots=True)
class SplitSides:
    """The two sides of a run: conversations with thumbs, and those with other grades alone, each ordered by id."""

    train: tuple[Conversation, ...]
    test: tuple[Conversation, ...]
    graded_train: tuple[Conversation, ...]
    graded_test: tuple[Conversation, ...]

    @property
    def judged_train(self) -> tuple[Conversation, ...]:
        """All that the pool is judged on."""
        return (*self.train, *self.graded_train)

    @property
    def judged_test(self) -> tuple[Conversation, ...]:
        """All that the chosen rubrics are judged on afterwards."""
        return (*self.test, *self.graded_test)


def split_logs_into_training_and_held_out(
    logs: Logs, test_fraction: float, seed: int
) -> SplitSides:
    """Split what is learned from; see `conversations.splits.split_conversations`."""
    # dealt together, so that what belongs together stays on one side
    dealt = split_conversations(
        [*logs.learnable, *list_conversations_graded_between_thumbs(logs)], test_fraction, seed
    )
    both = (dealt.train, dealt.test)
    thumbs = []
    for side in both:
        thumbs.append(
            tuple(conversation for conversation in side if conversation.label is not Label.NONE)
        )

    graded = []
    for side in both:
        graded.append(
            tuple(conversation for conversation in side if conversation.label is Label.NONE)
        )
    return SplitSides(*thumbs, *graded)


def _get_grade(conversation: Conversation, name: str) -> float:
    value: object = conversation.metadata
    # a dot leads into a nested field, unless a field has that very name
    for part in (name,) if name in conversation.metadata else name.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        else:
            value = None

    # a list holds several grades, whose mean counts
    if isinstance(value, list) and value:
        values = value
    else:
        values = [value]

    # true and false are no grades
    try:
        return float(
            np.mean([float(value) for value in values if not isinstance(value, bool)] or [np.nan])
        )
    except (TypeError, ValueError):
        return float("nan")


def compare_grade_models(
    parts: Sequence[Fold] | None,
    training: Sequence[Conversation],
    names: Sequence[str],
    seed: int,
) -> dict[str, object] | None:
    """Compare models of the grades; None where the labels are none. See `RatingRecord`.

    Args:
        parts: See `choose_rubrics_without_each_fold`; None where models can't be compared.
        names: See `collect_grades_of_conversations`.
    """
    from pollex.calibration.grades import compare_models_on_grades

    grades, scales = collect_grades_of_conversations(training, names)
    if not scales:
        return None

    # grades of the main question
    labels = int((~np.isnan(grades[:, 0])).sum())
    record: dict[str, object] = {
        "scales": {scale.question: scale.values for scale in scales},
        "labels": labels,
    }
    # without folds the network is taken, as it needs no comparison
    if parts is None:
        why = "models could not be compared on these conversations"
        return record | {"chosen": CALIBRATION_NETWORK_NAME, "why": why}

    rng = np.random.default_rng([seed, 7])
    comparison = compare_models_on_grades(
        parts,
        grades,
        scales,
        list_annotator_of_each_conversation(training),
        number_dependent_blocks(training),
        rng,
    )
    rows = []
    for name, quality in comparison.figures.items():
        rows.append(
            {
                "name": name,
                "n": quality.n,
                "rmse": vars(quality.rmse),
                "pearson": vars(quality.pearson),
            }
        )

    return record | {
        "chosen": comparison.chosen,
        "why": comparison.why,
        "compared": rows,
        "reliability": comparison.reliability,
    }


def fit_rating_model(
    comparison: Mapping[str, Any],
    answers: Floats,
    ids: Sequence[str],
    signs: Floats,
    training: Sequence[Conversation],
) -> JudgedEstimator:
    """Fit the chosen model of grades.

    Args:
        comparison: See `compare_grade_models`.
        answers, signs: See `calibration.thumbs.fit_calibration_model`.
        ids: Of the rubrics.
    """
    from pollex.calibration.grades import fit_model_to_grades

    grades, scales = collect_grades_on_scales(comparison, training)
    about = (list_annotator_of_each_conversation(training), ids, number_dependent_blocks(training))

    return fit_model_to_grades(
        comparison["chosen"],
        answers,
        signs.tolist(),
        grades,
        scales,
        *about,
    )


def make_json_of_model_comparison(
    comparison: ModelComparison | None, probability: str
) -> dict[str, object]:
    """Return the comparison as JSON values.

    Args:
        probability: See `LearnSettings`; taken where nothing could be compared.
    """
    if comparison is None:
        return make_json_without_model_comparison(
            probability, "too few conversations or rubrics to compare models"
        )

    rows = [vars(score) for score in comparison.scores]
    curve = [vars(point) for point in comparison.curve]
    facts = {
        "chosen": comparison.chosen,
        "why": comparison.why,
        "compared": rows,
        "curve": curve,
    }
    return facts | {"held_out": comparison.held_out.tolist()}


def make_json_without_model_comparison(probability: str, why: str) -> dict[str, object]:
    """Return the record without a comparison; the network is taken where `best` can't be told."""
    requested = find_calibration_model_name(probability)
    return {
        "chosen": CALIBRATION_NETWORK_NAME
        if requested == LEAST_LOG_LOSS_CHOICE_NAME
        else requested,
        "why": why,
        "compared": [],
        "held_out": None,
    }


@dataclass(frozen=True)
class FittedThumbs:
    """The models of thumbs and of grades, fitted on all answers that there are.

    Attributes:
        crossfitted: By conversation, P(thumb up) by a model and rubrics that did not see it.
        grades: By held-out conversation, the probability of each grade, likewise; empty where
            labels are no grades.
        tone: None where it was not looked at.
    """

    model: ThumbModel
    crossfitted: Mapping[str, float]
    grades: Mapping[str, Floats]
    tone: ToneRecord | None = None

    @classmethod
    def of(cls, material: Material, comparison: Mapping[str, Any]) -> FittedThumbs:
        """Fit the models that `compare_thumb_models` chose, and once more without each fold of what was held out."""
        pool = list_rubrics_to_choose_from(material)
        held_out_training = comparison["held_out"]
        likely = dict[str, float]()
        grades = dict[str, Floats]()
        taught, (held_out, fold) = (
            list_training_and_graded_conversations(material, pool),
            assign_held_out_conversations_to_folds(material),
        )
        # each held-out fold by models that were fitted on all other conversations
        for number in np.unique(fold):
            others = list(compress(held_out, fold != number))
            out = list(compress(held_out, fold == number))
            (part, tone), ids = (
                _fit_thumb_model(material, comparison, [*taught, *others]),
                [conversation.id for conversation in out],
            )
            answers = material.answers(out)
            if tone is not None:
                answers = tone.beside(answers, material, out)
            likely |= zip(ids, part.probability(answers).tolist(), strict=True)
            grades |= zip(ids, part.grades(answers), strict=True) if part.rating else ()

        # training conversations have their probabilities from the comparison
        if held_out_training is not None:
            likely |= zip(
                comparison["conversations"],
                held_out_training,
                strict=True,
            )

        # the models of the set itself see everything
        model, tone = _fit_thumb_model(material, comparison, [*taught, *held_out])
        return cls(
            model,
            likely,
            grades,
            make_tone_record(material, tone, comparison.get("tone")),
        )


def _fit_thumb_model(
    material: Material,
    comparison: Mapping[str, Any],
    rows: Sequence[Conversation],
) -> tuple[ThumbModel, FittedTone | None]:
    # scikit-learn comes with it, and takes a second to import
    from pollex.calibration.thumbs import fit_calibration_model

    rubrics, (set_weight, other) = material.in_order, comparison["weights"]
    # the set's rubrics come first, then a starter's; either group has one weight
    weights = np.where(
        np.arange(len(rubrics)) < len(material.chosen),
        set_weight,
        other,
    )
    signs = np.array([rubric.sign for rubric in rubrics]) * weights
    ids = [rubric.id for rubric in rubrics]
    answers = material.answers(rows)
    # tone stands last among the answers, with the weight that folds gave it
    tone = None
    if (weight := (comparison.get("tone") or {}).get("weight")) and (
        tone := fit_tone_of_run(material, rows)
    ) is not None:
        answers = tone.beside(answers, material, rows)
        signs = np.append(signs, weight)
        ids.append(TONE_SOURCE)

    # thumbs teach where there is one; grades teach on all rows
    has_thumb = np.array(
        [conversation.label is not Label.NONE for conversation in rows],
        dtype=bool,
    )
    thumbs = list_conversations_with_thumb(rows)
    about = (list_annotator_of_each_conversation(thumbs), ids, number_dependent_blocks(thumbs))
    own_model = fit_calibration_model(
        comparison["chosen"],
        answers[has_thumb],
        signs.tolist(),
        flag_positive_labels(thumbs),
        *about,
    )
    model = ThumbModel(tuple(ids), own_model, answers.shape[2])
    if (graded := comparison.get("grades")) is not None:
        model.rating = fit_rating_model(graded, answers, ids, signs, rows)

    return model, tone


def compare_thumb_models(material: Material, selection: Mapping[str, Any]) -> dict[str, Any]:
    """Compare models of the probability by cross-validation on training conversations."""
    # scikit-learn comes with it, and takes a second to import
    from pollex.calibration.thumbs import compare_calibration_models_by_folds

    settings = material.settings
    pool = list_rubrics_to_choose_from(material)
    about: dict[str, object] = {"conversations": [c.id for c in pool.conversations]}
    # rubrics that saw these conversations would flatter every model
    if any(c.text_hash[:16] in material.learned_from for c in pool.conversations):
        why = (
            "the rubrics were learned from these conversations, so models can't be compared on them"
        )
        unknown = {
            "grades": compare_grade_models(
                None,
                list_training_and_graded_conversations(material, pool),
                list_names_of_grade_fields(material),
                settings.seed,
            )
        }
        about["weights"] = material.starter.record.weights if material.starter else (1.0, 1.0)
        about["tone"] = get_tone_found_in_learning(material)
        return make_json_without_model_comparison(settings.probability, why) | unknown | about

    rows = list_training_and_graded_conversations(material, pool)
    # folds of the choice itself, else folds that are dealt here
    if material.by_evidence or material.by_both:
        parts = [part.fold for part in cross_fit(material, pool).parts] or None
    else:
        parts = choose_rubrics_without_each_fold(material, pool, selection["alpha"], rows)

    if parts and material.starter is not None:
        parts = [
            add_starter_answers_to_fold(material, pool, selection, fold, rows) for fold in parts
        ]

    about["tone"] = None
    # beside a starter's rubrics tone isn't tried
    if parts and material.form is not None and material.starter is None:
        parts, about["tone"] = add_tone_to_folds_where_it_helps(
            material, pool, selection, parts, rows
        )

    advance = partial(material.progress.advance, "calibrate")
    # conversations with a thumb stand first, and models of thumbs see these alone
    count = len(pool.conversations)
    thumbs = parts and [
        replace(fold, out=fold.out[:count], answers=fold.answers[:count]) for fold in parts
    ]
    about_rows = (
        pool.labels,
        list_annotator_of_each_conversation(pool.conversations),
        advance,
        number_dependent_blocks(pool.conversations),
    )
    comparison = None
    if thumbs:
        comparison = compare_calibration_models_by_folds(
            thumbs,
            *about_rows,
            find_calibration_model_name(settings.probability),
        )

    grades = compare_grade_models(parts, rows, list_names_of_grade_fields(material), settings.seed)
    about["weights"] = fit_weights_of_set_and_starter(material, pool, selection)
    return (
        make_json_of_model_comparison(comparison, settings.probability) | {"grades": grades} | about
    )


def get_tone_found_in_learning(material: Material) -> dict[str, object] | None:
    """Return what was found of tone when the set was learned, as `add_tone_to_folds_where_it_helps` does."""
    before = material.earlier_tone
    if before is None:
        return None
    return {"weight": before.weight, "adds": asdict(before.adds)}


def add_tone_to_folds_where_it_helps(
    material: Material,
    pool: Candidates,
    selection: Mapping[str, Any],
    parts: list[Fold],
    rows: Sequence[Conversation],
) -> tuple[list[Fold], dict[str, object]]:
    """Return the folds with tone beside the rubrics where it lowers log-loss, else as they are, and what was found.

    Measured is what the network begins as, with tone and without: it takes a second, and networks a
    minute.
    """
    # scikit-learn comes with them
    from pollex.calibration.paired import (
        compute_clustered_standard_error_of_mean,
        compute_joint_intervals_of_mean_gains,
    )
    from pollex.calibration.thumbs import fit_calibration_model, predict_thumb_up_probability

    honest = selection["held_out_scores"]
    count = len(pool.conversations)
    others = []
    for fold in parts:
        others.append(add_tone_answer_to_fold(material, fold, rows, honest))

    beside = [fold for fold in others if fold is not None]
    # tone is measured only where every fold can learn it from the others
    if len(beside) < len(parts):
        too_few = Figure(
            None,
            n=count,
            undefined="there are too few labels to learn it from",
        )
        return parts, {"weight": 0.0, "adds": asdict(too_few)}

    # How much lower log-loss is with tone, of each conversation by what did not see it.
    up = pool.labels
    blocks = number_dependent_blocks(pool.conversations)
    # log-loss without tone and with it `[way, conversation]`
    loss = np.zeros((2, count))
    for place, folds in enumerate((parts, beside)):
        for fold in folds:
            out = fold.out[:count]
            answers = fold.answers[:count]
            model = fit_calibration_model(
                NETWORK_STARTING_MODEL_NAME,
                answers[~out],
                fold.signs,
                up[~out],
                groups=blocks[~out],
            )
            p = predict_thumb_up_probability(model, answers[out])
            loss[place, out] = -np.log(np.where(up[out], p, 1 - p))

    gain = loss[0] - loss[1]
    mean, (low, high) = (
        float(gain.mean()),
        compute_joint_intervals_of_mean_gains(gain[:, None], blocks, np.random.default_rng(11))[
            0
        ].tolist(),
    )
    adds = Figure(mean, low, high, n=count, units=len(np.unique(blocks)))
    # less than a standard error is no gain
    if mean <= compute_clustered_standard_error_of_mean(gain, blocks):
        return parts, {"weight": 0.0, "adds": asdict(adds)}

    # each fold has put the weight of tone last
    weight = float(np.mean([fold.signs[-1] for fold in beside]))
    return beside, {"weight": weight, "adds": asdict(adds)}


def choose_rubrics_without_each_fold(
    material: Material,
    pool: Candidates,
    alpha: float,
    rows: Sequence[Conversation],
) -> list[Fold] | None:
    """Deal folds, and choose rubrics without each by those with thumbs; None if there are too few conversations."""
    # scikit-learn comes with it, and takes a second to import
    from pollex.calibration.thumbs import Fold

    rubrics = pool.rubrics
    parts = []
    if (fold := assign_conversations_to_folds(material, rows)) is None:
        return None

    answers = material.table.probabilities(rows, rubrics)
    # rubrics are chosen by thumbs outside the fold
    for number in range(CROSSFIT_FOLDS):
        out = fold == number
        rng = np.random.default_rng([material.settings.seed, 3, number])
        chosen = choose_rubrics_on_some_conversations(
            material, pool, ~out[: len(pool.labels)], alpha, rng
        ).chosen
        # by id, the one order that the network knows
        places = sorted(chosen, key=lambda place: rubrics[place].id)
        parts.append(
            Fold(
                out,
                [float(rubrics[place].sign) for place in places],
                answers[:, places],
            )
        )

    return parts


def fit_weights_of_set_and_starter(
    material: Material,
    pool: Candidates,
    selection: Mapping[str, object],
    in_training: Bools | None = None,
) -> tuple[float, float]:
    """Return what the rubrics of the set and of its starter count for, so that NetSATs weigh as labels let them.

    Args:
        in_training: Training conversations whose labels are looked at; None for all.
    """
    if material.starter is None:
        return 1.0, 1.0

    if in_training is None:
        rows = np.ones(len(pool.conversations), dtype=bool)
    else:
        rows = in_training

    other = material.starter.netsats(pool.conversations)
    positive = flag_positive_labels(pool.conversations)
    # Without folds the set has seen these labels: beside its own NetSAT the starter's would seem to
    # say nothing.
    honest = selection["held_out_scores"]
    if honest is None:
        set_netsats = np.zeros(len(other))
    else:
        set_netsats = np.array(honest)

    # the weights are of standardized NetSATs: over the spread they are of points
    if honest is not None:
        spread = set_netsats
    else:
        spread = sum_rubric_values(material.table.matrix(pool.conversations, material.chosen)[0])

    first, second = fit_starter_weights(
        standardize_values(set_netsats)[rows],
        standardize_values(other)[rows],
        positive[rows],
    )
    return first / (spread.std() or 1.0), second / (other.std() or 1.0)


def add_starter_answers_to_fold(
    material: Material,
    pool: Candidates,
    selection: Mapping[str, object],
    fold: Fold,
    rows: Sequence[Conversation],
) -> Fold:
    """Return a fold with the starter's answers beside those of the rubrics that were chosen without it."""
    assert material.starter is not None, "only called where there is one"
    set_weight, other = fit_weights_of_set_and_starter(
        material,
        pool,
        selection,
        ~fold.out[: len(pool.conversations)],
    )
    signs = [
        *(set_weight * sign for sign in fold.signs),
        *(other * rubric.sign for rubric in material.starter.record.rubrics),
    ]

    return replace(
        fold,
        signs=signs,
        answers=np.concatenate([fold.answers, material.of_starter(rows)], axis=1),
    )


def list_names_of_grade_fields(material: Material) -> list[str]:
    """Return the fields that may hold grades, the main one first."""
    if material.logs.label_field:
        return [material.logs.label_field, *material.settings.others_rated]
    return []
