"""The page on a calibrator: how well its predictions fit, and what it has learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from pollex.conversations.conversation import Turn
from pollex.measures.distributions import PredictionQuality, ReliabilityDiagram
from pollex.measures.intervals import MIN_UNITS_FOR_INTERVAL, Figure, LabelSupport
from pollex.reports.numbers import (
    format_grouped_count,
    format_interval_in_words,
    format_number,
    is_known,
    join_with_and,
)
from pollex.reports.page import MAX_REASON_CHARACTERS, render_template, shorten_text
from pollex.rooms.questionnaire.calibration.leverage import Leverage
from pollex.rooms.questionnaire.calibration.model_choice import ModelChoice, join_trial_names
from pollex.rooms.questionnaire.calibration.response_curves import ResponseCurve
from pollex.rooms.questionnaire.formats.answers import TableIssue

NO_INTERVAL = "no interval"
"""Where there are too few texts for one, or it was left out because it takes minutes."""

MAX_ROWS_OPEN = 8
"""Rows of the longest table of subgroups that is open from the start."""


SECTION_TITLES = {
    "compared": "Compared with simpler models",
    "texts": "What is predicted of the texts",
    "reliability": "Do the probabilities come true?",
    "judges": "How each judge answers",
    "questions": "What each question adds",
    "leverage": "What would raise the main answer",
    "learning": "Would more labels help?",
    "chosen": "What was chosen",
    "left-out": "What was left out",
    "words": "How to read this page",
}


def calibration_page(data: CalibrationData) -> str:
    """Render the whole page as HTML, the same for the same data.

    Write it as UTF-8.
    """
    return render_template("calibration.html", file="", **prepare_page_values(data))


def prepare_page_values(data: CalibrationData) -> dict[str, Any]:
    """Return what the templates of a calibrator's page are filled with."""
    choice = data.choice
    shares = data.choice.weights if data.choice else {}
    # models that the calibrator averages, by their shares
    if choice:
        weighted = [choice.trials[place] for place in shares]
    else:
        weighted = []

    weights = []
    for trial, share in zip(weighted, shares.values(), strict=True):
        weights.append(f"{trial.name} ({format_number(share)})")

    # the calibrator stands first among the models compared
    calibrator_smece, *others = (
        model.assessment.smece for model in data.compared if model.assessment is not None
    )
    # leverages as figures, which tables and drawings take
    figures = []
    for leverage in data.leverages:
        figures.append(
            Figure(
                leverage.mean,
                leverage.low,
                leverage.high,
                leverage.n,
                leverage.undefined,
            )
        )

    by_question = {}
    for name, predictions in groupby(data.predicted, lambda predicted: predicted.question):
        by_question[name] = list(predictions)
    return {
        "data": data,
        "titles": SECTION_TITLES,
        "verdict": describe_accuracy(data),
        "about": describe_model(data),
        "cautions": list(list_cautions(data)),
        # only the calibrator has an interval of smECE, to save time
        "spared": is_known(calibrator_smece.low)
        and any(is_known(smece.value) and not is_known(smece.low) for smece in others),
        # predictions for one question stand together
        "by_question": by_question,
        "leverages": list(zip(data.leverages, figures, strict=True)),
        "longest_open": MAX_ROWS_OPEN,
        "no_interval": NO_INTERVAL,
        # one point makes no curve
        "drawn": sum(point.log_loss is not None for point in data.learning) > 1,
        "members": join_with_and(weights) if len(weights) > 1 else "",
        "ranking": [
            (trial, trial in weighted) for trial in choice.ranking() if trial.loss is not None
        ]
        if choice
        else [],
        "refusals": {why: join_trial_names(trials) for why, trials in choice.refusals().items()}
        if choice
        else {},
        "fewest": MIN_UNITS_FOR_INTERVAL,
        "facts": data.facts,
    }


def describe_accuracy(data: CalibrationData) -> str:
    """Say in one sentence how far predictions are from the given answers."""
    loss = data.own.log_loss
    where = (
        f"On {format_grouped_count(data.labels, 'label')} of "
        f"{format_grouped_count(data.texts, 'text')}, held out in turn"
    )
    if not is_known(loss.value):
        return f"{where}, the log-loss of the predictions is undefined: {loss.undefined}."

    bounds = format_interval_in_words(loss, 3, NO_INTERVAL)
    return f"{where}, the predictions have a log-loss of {format_number(loss.value, 3)} ({bounds})."


def describe_model(data: CalibrationData) -> str:
    """Say which model it is, how it was tested, and how far judges agree."""
    alpha = data.agreement
    bounds = format_interval_in_words(data.agreement, 2, NO_INTERVAL)
    if is_known(alpha.value):
        agree = (
            f"Judges agree with each other by {format_number(alpha.value)} (Krippendorff's α, {bounds}; "
            f"{format_grouped_count(alpha.n, 'label')} of "
            f"{format_grouped_count(alpha.units or 0, 'text')}); 1 is full agreement, 0 is chance."
        )
    else:
        agree = f"Agreement between judges can't be measured: {alpha.undefined}."

    return (
        f"Model: {shorten_text(data.title, MAX_REASON_CHARACTERS)}. "
        f"{format_grouped_count(data.judges, 'judge')}; {data.folds} folds by text, "
        f"seed {data.seed}. {agree} Where judges disagree, no model can predict an unknown judge."
    )


def list_cautions(data: CalibrationData) -> Iterator[str]:
    """Say what the figures don't show."""
    yield _make_sentence(str(data.support))
    # the models beside the calibrator, and how far each is behind it
    others = []
    for model in data.compared[1:]:
        if model.behind:
            others.append((model.title, model.behind))

    for title, behind in others:
        if title == "constant" and is_known(behind.low) and behind.low <= 0:
            yield "By log-loss, it is not clearly better than a constant, which uses neither text nor judge."

    for title, behind in others:
        if is_known(behind.high) and behind.high < 0:
            yield f"{title} has the lower log-loss here, by {format_number(-(behind.value or 0.0), 3)}."

    if data.unlike:
        yield _make_sentence(data.unlike)
    if data.choice is not None:
        yield "Models were compared again inside every fold, so the choice does not make the figures optimistic."

    # 0 means none of these texts, of which nothing needs to be said
    if data.learned_from != 0:
        if data.learned_from is None:
            learned = "It is not known which texts the kept calibrator learned from"
        else:
            learned = f"The kept calibrator learned from {data.learned_from:,} of these texts"

        yield (
            f"{learned}; the figures are of models fitted anew, with the same settings, "
            "without the texts they predict."
        )


def _make_sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


@dataclass(frozen=True)
class ComparedModel:
    """A model beside the calibrator, cross-fitted on the same judgments.

    Attributes:
        assessment: None where it can't be fitted on these tables.
        behind: Its log-loss minus the calibrator's; None for the calibrator itself.
        why_not: Why there is no assessment.
    """

    title: str
    assessment: PredictionQuality | None
    behind: Figure | None = None
    why_not: str = ""


@dataclass(frozen=True)
class QuestionGain:
    """Rise of the held-out log-loss when the LLM is not asked a question."""

    question: str
    gain: Figure


@dataclass(frozen=True)
class LearningPoint:
    """Held-out log-loss with a share of the training texts.

    Attributes:
        labels: Mean number behind a model.
        log_loss: Mean over draws of the texts; None where it is undefined.
        deviation: Standard deviation over the draws, which share texts.
        draws: How many there were.
    """

    share: float
    labels: float
    log_loss: float | None
    deviation: float | None
    draws: int


@dataclass(frozen=True)
class TailText:
    """A text of the lower tail, with its turns where the log was given."""

    id: str
    score: float
    turns: tuple[Turn, ...] = ()


@dataclass(frozen=True)
class PredictedScores:
    """Expected answers of texts to a question, the mean over judges; bands are over texts and judges.

    Attributes:
        column: Column of the subset, and its `group`; both empty for all texts.
        mesh: Where the density is known.
        low: Its lower bound; empty, as `high` is, where there are too few texts.
        tail: The lowest texts.
    """

    question: str
    column: str
    group: str
    mean: Figure
    mesh: Sequence[float]
    density: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    tail: tuple[TailText, ...]


@dataclass(frozen=True)
class CalibrationData:
    """Everything on the page.

    Attributes:
        title: The calibrator's name for people.
        worker: The model that gains and the learning curve are of: the calibrator's heaviest member
            where it has members, another in place of one that takes too long to be fitted often.
        unlike: How the cross-fitted models differ from the kept calibrator; empty where they don't.
        main: Id of the main question.
        texts: How many have a judgment of the main question.
        folds: Of cross-fitting, by text.
        learned_from: Of these texts, how many the kept calibrator was fitted on; None where that is
            unknown.
        agreement: Krippendorff's alpha between the judges.
        choice: Which model was chosen and by how much; None where the model was named.
        compared: The calibrator first.
        subgroups: By column, the figures of each group.
        mesh: The LLM's expected main answers at which response curves are drawn; empty where it was
            not asked.
    """

    title: str
    worker: str
    unlike: str
    main: str
    values: tuple[float, ...]
    texts: int
    labels: int
    judges: int
    folds: int
    seed: int
    learned_from: int | None
    support: LabelSupport
    agreement: Figure
    choice: ModelChoice | None
    compared: tuple[ComparedModel, ...]
    reliabilities: tuple[ReliabilityDiagram, ...]
    subgroups: Mapping[str, Mapping[str, PredictionQuality]]
    mesh: tuple[float, ...]
    responses: tuple[ResponseCurve, ...]
    gains: tuple[QuestionGain, ...]
    learning: tuple[LearningPoint, ...]
    leverages: tuple[Leverage, ...]
    faults: tuple[TableIssue, ...] = ()
    predicted: tuple[PredictedScores, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def own(self) -> PredictionQuality:
        """The calibrator's figures."""
        quality = self.compared[0].assessment
        assert quality is not None, "a calibrator that can't be fitted has no page"
        return quality
