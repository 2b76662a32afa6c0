"""Figures of a calibrator, cross-fitted beside simpler models: the data of its report."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone

from pollex.calibration.crossfit import assign_folds, crossfit, learning_curve
from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.judgments import Judgments, predictions_beside
from pollex.calibration.leverage import Leverage, leverages
from pollex.calibration.models import NAMES, model_named, name_of
from pollex.calibration.questionnaire import Questionnaire
from pollex.calibration.response_curves import response_curves
from pollex.errors import BadInput, WrongUse
from pollex.formats.answers import AnswerTable, naturally
from pollex.formats.judgments import JudgmentTable
from pollex.graphs.context import Progress
from pollex.measures.agreement import Level, alpha
from pollex.measures.arrays import Floats, Ints
from pollex.measures.distributions import Predictions, Quality, assess, assess_each, difference
from pollex.measures.intervals import Figure, support
from pollex.measures.reliability import reliability
from pollex.reports.calibration import (
    CalibrationData,
    ComparedModel,
    LearningPoint,
    QuestionGain,
)
from pollex.services.calibrate import choice_of, groups_of, name_for_people

FOLDS = 5
SLOW = {"network", "best"}
"""No baselines, and nothing that is fitted a hundred times: that takes minutes."""
BLIND = {"constant", "judge_mean", "as_is", "argmax", "main_alone", "isotonic"}
"""Without the other questions they predict the same."""
STAND_IN = "ordinal"
STAND_IN_OF_CLASSES = "network"
FEW_SEEDS = 3
"""Of a network that is fitted a hundred times."""
FEW_ANSWERS = 10
"""Of the main question: with more of them intervals of smECE take minutes."""
SHARES = (0.1, 0.2, 0.4, 0.7, 1.0)
MOST_GROUPS, MOST_JUDGES = 8, 60
JUDGE, LLMS_JUDGE = "judge", "judge (column of the answers)"
"""Titles of subgroups: by judge means by the people who judged; a table of answers may say so of who answered."""


@dataclass(frozen=True)
class Effort:
    """Effort for intervals and curves.

    Attributes:
        resamples: Resamples of texts, for most intervals.
        smece: Resamples of texts for the calibrator's interval of smECE, which takes long.
        smece_beside: Resamples of texts for smECE of each compared model.
        draws: Draws of training texts for each point of the learning curve.
    """

    resamples: int = 2000
    smece: int = 100
    smece_beside: int = 20
    draws: int = 5


QUICK = Effort(resamples=200, smece=20, draws=1)


@dataclass(frozen=True, eq=False)
class Bench:
    """Tables, folds and what is drawn at random, for everything that is measured.

    Attributes:
        groups: Of each text, for a model that chooses by leaving groups out; None for others.
    """

    X: Floats
    y: Judgments
    questions: Questionnaire
    folds: Sequence[Ints]
    seed: int
    groups: Ints | None
    effort: Effort
    progress: Progress

    @property
    def given(self) -> Judgments:
        """Judgments of the main question."""
        return self.y.of_question(self.questions.index())

    def smece_resamples(self, *, own: bool) -> int:
        """Return the resamples for an interval of smECE, fewer with many answers."""
        if len(self.questions.scale().values) <= FEW_ANSWERS:
            return self.effort.smece if own else self.effort.smece_beside
        return min(self.effort.smece, self.effort.smece_beside) if own else 0

    @property
    def rng(self) -> np.random.Generator:
        """A new one, so that no figure depends on which others are measured."""
        return np.random.default_rng(self.seed)

    def predictions(self, model: JudgedEstimator, X: Floats, questions: Questionnaire) -> Predictions:
        """Predict held-out texts by cross-fitting."""
        proba = crossfit(model, X, self.y, questions, self.folds, self.groups)
        return predictions_beside(proba, self.given, self.questions.scale())


def as_fitted(
    model: JudgedEstimator, shift: str | None, table: AnswerTable, judged: JudgmentTable
) -> tuple[JudgedEstimator, Ints | None, str]:
    """Return the unfitted model, its group array, and its difference from the saved one.

    Args:
        shift: The column of groups that the kept one chose by.
    """
    made: JudgedEstimator = clone(model)
    if made.get_params().get("search"):
        seconds = made.get_params()["search_seconds"] / FOLDS
        made.set_params(search_seconds=seconds)
        return made, None, f"inside each of the folds settings were searched for {seconds:.0f} seconds only"
    if not made.get_params().get("shift"):
        return made, None, ""
    labels = groups_of(table, judged).get(shift or "", ())
    names = {labels[row] for row in judged.judgments.row.tolist()} if labels else set()
    # one of three groups or more can be left out inside a fold and still leave two to choose by
    if len(names) > 2:
        return made, np.unique(np.array(labels), return_inverse=True)[1].astype(np.int64), ""
    made.set_params(shift=False)
    why = f"these tables have no column {shift!r} of three groups or more"
    return made, None, f"{why}, so inside the folds the model was chosen by cross-validation, not by leaving groups out"


def bench_of(
    table: AnswerTable, judged: JudgmentTable, seed: int, groups: Ints | None, effort: Effort, progress: Progress
) -> Bench:
    """Split the texts into folds.

    Raises:
        BadInput: Only one text has a judgment of the main question.
    """
    questions, y = judged.questionnaire, judged.judgments
    rows = np.unique(y.of_question(questions.index()).row)
    if len(rows) < 2:
        raise BadInput("one text only has a judgment of the main question", remedy="give judgments of more texts")
    found = assign_folds(np.arange(len(rows)), min(FOLDS, len(rows)), np.random.default_rng(seed))
    return Bench(table.X, y, questions, [rows[part] for part in found], seed, groups, effort, progress)


def data_of(
    model: JudgedEstimator,
    made: JudgedEstimator,
    bench: Bench,
    table: AnswerTable,
    judged: JudgmentTable,
    seen: int | None,
) -> CalibrationData:
    """Compute everything on the page.

    Args:
        made: The model to be cross-fitted.
        seen: How many of the texts the kept model learnt from; None where nobody knows.
    """
    title = name_for_people(model)
    own, predictions = compared(bench, title, made, own=True)
    given, scale = bench.given, bench.questions.scale()
    quick = quick_of(model, scale.ordinal)
    mesh, responses = response_curves(model, bench.X, given)
    return CalibrationData(
        title=title,
        worker=quick.title,
        unlike="",
        main=bench.questions.main,
        values=scale.values,
        texts=len(np.unique(given.row)),
        labels=given.labels,
        judges=len({name for name in given.names() if name is not None}),
        folds=len(bench.folds),
        seed=bench.seed,
        learned_from=seen,
        support=support(given.labels),
        agreement=agreement_of(bench),
        choice=choice_of(model),
        compared=(own, *kept(bench, model, predictions, seen), *baselines(bench, model, predictions)),
        reliabilities=tuple(reliability(predictions.proba, given.answer, given.row, scale.values)),
        subgroups=subgroups_of(bench, predictions, table, judged),
        mesh=mesh,
        responses=responses,
        gains=gains_of(bench, quick),
        learning=learning_of(bench, quick),
        leverages=leverages_of(model, bench),
        faults=(*table.faults, *judged.faults),
    )


def compared(
    bench: Bench, title: str, model: JudgedEstimator, *, own: bool = False
) -> tuple[ComparedModel, Predictions]:
    """Cross-fit a model; return its held-out figures and predictions.

    Args:
        own: Whether it is the calibrator that the page is about.
    """
    with stage(bench.progress, f"Cross-fitting: {title}"):
        predictions = bench.predictions(model, bench.X, bench.questions)
        figures = assess(predictions, bench.rng, bench.effort.resamples, bench.smece_resamples(own=own))
        return ComparedModel(title, figures), predictions


def kept(bench: Bench, model: JudgedEstimator, own: Predictions, seen: int | None) -> list[ComparedModel]:
    """Measure the saved calibrator if all texts are new to it; else return nothing."""
    if seen != 0:
        return []
    given = bench.given
    proba = model.predict_proba(bench.X[given.row], given.names().tolist())
    predictions = predictions_beside(proba, given, bench.questions.scale())
    figures = assess(predictions, bench.rng, bench.effort.resamples, bench.smece_resamples(own=False))
    behind = difference(predictions, own, "log_loss", bench.rng, bench.effort.resamples)
    return [ComparedModel("the kept one as it is", figures, behind)]


def baselines(bench: Bench, model: JudgedEstimator, own: Predictions) -> Iterator[ComparedModel]:
    """Yield all quick models with usual settings, and how far each is behind."""
    for name in NAMES:
        kind = model_named(name) if name not in SLOW else None
        if kind is None or kind is type(model):
            continue
        try:
            found, predictions = compared(bench, kind.title, kind())
        except WrongUse as error:
            yield ComparedModel(kind.title, None, why_not=error.what)
        else:
            yield replace(found, behind=difference(predictions, own, "log_loss", bench.rng, bench.effort.resamples))


def quick_of(model: JudgedEstimator, ordinal: bool = True) -> JudgedEstimator:
    """Return a fast substitute for repeated fits: the heaviest member, or another model.

    Of several, those that look at the main question alone, or at no text, have nothing to say of the other questions.

    Args:
        ordinal: Whether the main question is; if not, the network alone looks at the texts.
    """
    members, weights = getattr(model, "members_", (model,)), getattr(model, "weights_", np.ones(1))
    slow = SLOW if ordinal else SLOW - {STAND_IN_OF_CLASSES}
    quick = [place for place, member in enumerate(members) if name_of(member) not in slow]
    telling = quick if len(members) == 1 else [place for place in quick if name_of(members[place]) not in BLIND]
    if not telling:
        made = model_named(STAND_IN if ordinal else STAND_IN_OF_CLASSES)()
    else:
        made = clone(members[max(telling, key=lambda place: float(weights[place]))])
    if name_of(made) == STAND_IN_OF_CLASSES:
        made.set_params(search=None, seeds=FEW_SEEDS)
    return made


def agreement_of(bench: Bench) -> Figure:
    """Krippendorff's alpha between judges on the main question."""
    scale, given = bench.questions.scale(), bench.given
    level: Level = "ordinal" if scale.ordinal else "nominal"
    return alpha(given.row, given.judge, given.answer, scale.values, level, bench.rng, bench.effort.resamples)


def subgroups_of(
    bench: Bench, predictions: Predictions, table: AnswerTable, judged: JudgmentTable
) -> dict[str, dict[str, Quality]]:
    """Measure figures by group, for columns of few groups, and by judge."""
    rows = bench.given.row.tolist()
    columns = {
        LLMS_JUDGE if column == JUDGE else column: [of_text[row] or "none" for row in rows]
        for column, of_text in groups_of(table, judged).items()
        if len(set(of_text)) <= MOST_GROUPS
    }
    judges = [name or "nobody known" for name in bench.given.names().tolist()]
    if len(set(judges)) <= MOST_JUDGES:
        columns[JUDGE] = judges
    found = {}
    for column, labels in columns.items():
        if len(set(labels)) > 1:
            each = assess_each(predictions, labels, bench.rng, bench.effort.resamples, smece_resamples=0)
            found[column] = {label: each[label] for label in sorted(set(labels), key=naturally)}
    return found


def gains_of(bench: Bench, model: JudgedEstimator) -> tuple[QuestionGain, ...]:
    """Measure how much log-loss rises without the answers to each question, cross-fitted."""
    asked = [scale.question for scale in bench.questions.asked]
    if len(asked) < 2:
        return ()
    whole = bench.predictions(model, bench.X, bench.questions)
    found = []
    for question in asked:
        with stage(bench.progress, f"Without question {question}"):
            scales = tuple(replace(s, asked=s.asked and s.question != question) for s in bench.questions.scales)
            columns = np.delete(np.arange(bench.X.shape[1]), bench.questions.blocks[question])
            try:
                fewer = bench.predictions(model, bench.X[:, columns], Questionnaire(scales, bench.questions.main))
            except WrongUse as error:
                gain = Figure(None, n=len(whole), undefined=error.what)
            else:
                gain = difference(fewer, whole, "log_loss", bench.rng, bench.effort.resamples)
            found.append(QuestionGain(question, gain))
    return tuple(found)


def learning_of(bench: Bench, model: JudgedEstimator) -> tuple[LearningPoint, ...]:
    """Measure log-loss by number of labels."""
    with stage(bench.progress, "Learning curve"):
        points = learning_curve(
            model, bench.X, bench.y, bench.questions, bench.folds, bench.rng, SHARES, bench.effort.draws
        )
    return tuple(
        LearningPoint(p.share, p.labels, p.mean("log_loss"), p.deviation("log_loss"), len(p.repeats)) for p in points
    )


def leverages_of(model: JudgedEstimator, bench: Bench) -> tuple[Leverage, ...]:
    """Measure leverages of the kept model on the answers in X.

    Not on judges' predicted answers: the network has other weights for these than for the main question, so that the
    ratio of their gradients means nothing.
    """
    with stage(bench.progress, "Leverage"):
        return tuple(leverages(model, bench.X, bench.rng))


@contextmanager
def stage(progress: Progress, name: str) -> Iterator[None]:
    """Show a bar for one step."""
    progress.start(name, 1)
    yield
    progress.advance(name)
