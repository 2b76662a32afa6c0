"""Use case of calibration: report on a calibrator, beside simpler models."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
from sklearn.base import clone

from pollex.calibration import CALIBRATOR_FILE_NAME
from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.folds import assign_groups_to_folds
from pollex.calibration.judgments import Judgments, pair_predictions_with_judgments
from pollex.calibration.models import get_model_class, get_model_name, list_model_names
from pollex.calibration.questionnaire import Questionnaire
from pollex.calibration.storage import load_each
from pollex.conversations.conversation import Conversation
from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.files import find_files_of_sources
from pollex.formats.write import require_writable_output_path
from pollex.graphs.context import NullProgress, Progress
from pollex.measures.arrays import Floats, Ints
from pollex.measures.correlations import MeasurementLevel, estimate_krippendorff_alpha
from pollex.measures.distributions import (
    PredictionQuality,
    Predictions,
    assess_predictions,
    assess_predictions_by_group,
    estimate_difference_of_prediction_measure,
    make_reliability_diagrams,
)
from pollex.measures.intervals import CONFIDENCE_LEVEL, MIN_UNITS_FOR_INTERVAL, Figure, LabelSupport
from pollex.outputs import write_text
from pollex.rooms.questionnaire.calibration.crossfit import (
    compute_learning_curve,
    predict_out_of_fold,
)
from pollex.rooms.questionnaire.calibration.leverage import Leverage, compute_leverages
from pollex.rooms.questionnaire.calibration.response_curves import compute_response_curves
from pollex.rooms.questionnaire.formats.answers import AnswerTable, TableIssue, make_natural_key
from pollex.rooms.questionnaire.formats.judgments import JudgmentTable
from pollex.rooms.questionnaire.formats.read_tables import read_answers, read_judgments
from pollex.rooms.questionnaire.reports.calibration import (
    CalibrationData,
    ComparedModel,
    LearningPoint,
    PredictedScores,
    QuestionGain,
    TailText,
    calibration_page,
)
from pollex.rooms.questionnaire.services.calibrate import (
    TablesRead,
    find_model_choice,
    name_for_people,
    pair_group_columns,
    write_faults_json,
)
from pollex.rooms.questionnaire.services.training_record import (
    TRAINING_FILE_NAME,
    read_training_record,
)
from pollex.services.logs import logs_from
from pollex.services.results import Result
from pollex.text import JsonDict, TerminalLines, TerminalTable

REPORT_FOLDS = 5
BASELINE_MODELS = ("argmax", "as_is", "constant", "judge_mean", "main_alone")
SLOW_MODELS = {"network", "best"}
"""No baselines, and nothing that is fitted a hundred times: that takes minutes."""
MODELS_BLIND_TO_QUESTIONS = {"constant", "judge_mean", "as_is", "argmax", "main_alone", "isotonic"}
"""Without the other questions they predict the same."""
STAND_IN_MODEL = "ordinal"
STAND_IN_MODEL_FOR_CLASSES = "network"
FEW_NETWORK_SEEDS = 3
"""Of a network that is fitted a hundred times."""
FEW_ANSWER_OPTIONS = 10
"""Of the main question: with more of them intervals of smECE take minutes."""
LEARNING_CURVE_SHARES = (0.1, 0.2, 0.4, 0.7, 1.0)
MAX_GROUPS_SHOWN = 8
MAX_JUDGES_SHOWN = 60
JUDGE_COLUMN, LLM_JUDGE_COLUMN = "judge", "judge (column of the answers)"
"""Titles of subgroups: by judge means by the people who judged; a table of answers may say so of who answered."""


@dataclass(frozen=True)
class ReportEffort:
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


QUICK_EFFORT = ReportEffort(resamples=200, smece=20, draws=1)


@dataclass(frozen=True, eq=False)
class MeasuringBench:
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
    effort: ReportEffort
    progress: Progress

    @property
    def given(self) -> Judgments:
        """Judgments of the main question."""
        return self.y.of_question(self.questions.index())

    def smece_resamples(self, *, is_main: bool) -> int:
        """Return the resamples for an interval of smECE, fewer with many answers."""
        if len(self.questions.scale().values) <= FEW_ANSWER_OPTIONS:
            return self.effort.smece if is_main else self.effort.smece_beside
        if is_main:
            return min(self.effort.smece, self.effort.smece_beside)
        return 0

    @property
    def rng(self) -> np.random.Generator:
        """A new one, so that no figure depends on which others are measured."""
        return np.random.default_rng(self.seed)

    def predictions(
        self,
        model: JudgedEstimator,
        X: Floats,
        questions: Questionnaire,
    ) -> Predictions:
        """Predict held-out texts by cross-fitting."""
        proba = predict_out_of_fold(
            model,
            X,
            self.y,
            questions,
            self.folds,
            self.groups,
        )
        return pair_predictions_with_judgments(proba, self.given, self.questions.scale())


def rebuild_unfitted_model(
    model: JudgedEstimator,
    shift: str | None,
    table: AnswerTable,
    judged: JudgmentTable,
) -> tuple[JudgedEstimator, Ints | None, str]:
    """Return the unfitted model, its group array, and its difference from the saved one.

    Args:
        shift: The column of groups that the kept one chose by.
    """
    judged_estimator: JudgedEstimator = clone(model)
    # each fold searches too: they share out the time of one search
    if judged_estimator.get_params().get("search"):
        seconds = judged_estimator.get_params()["search_seconds"] / REPORT_FOLDS
        judged_estimator.set_params(search_seconds=seconds)
        return (
            judged_estimator,
            None,
            f"inside each of the folds settings were searched for {seconds:.0f} seconds only",
        )
    # a model that was not chosen by leaving groups out takes no groups
    if not judged_estimator.get_params().get("shift"):
        return judged_estimator, None, ""

    # only groups with a judged text count
    labels = pair_group_columns(table, judged).get(shift or "", ())
    if labels:
        names = {labels[row] for row in judged.judgments.row.tolist()}
    else:
        names = set()

    # one of three groups or more can be left out inside a fold and still leave two to choose by
    if len(names) > 2:
        return (
            judged_estimator,
            np.unique(np.array(labels), return_inverse=True)[1].astype(np.int64),
            "",
        )

    judged_estimator.set_params(shift=False)
    why = f"these tables have no column {shift!r} of three groups or more"
    return (
        judged_estimator,
        None,
        f"{why}, so inside the folds the model was chosen by cross-validation, not by leaving groups out",
    )


def split_bench(
    table: AnswerTable,
    judged: JudgmentTable,
    seed: int,
    groups: Ints | None,
    effort: ReportEffort,
    progress: Progress,
) -> MeasuringBench:
    """Split the texts into folds.

    Raises:
        BadInput: Only one text has a judgment of the main question.
    """
    questions = judged.questionnaire
    y = judged.judgments
    # only texts with a judgment of the main question can be held out
    rows = np.unique(y.of_question(questions.index()).row)
    if len(rows) < 2:
        raise BadInput(
            "one text only has a judgment of the main question",
            hint="give judgments of more texts",
        )

    # folds number the places of these rows; the bench wants the rows themselves
    folds = assign_groups_to_folds(
        np.arange(len(rows)),
        min(REPORT_FOLDS, len(rows)),
        np.random.default_rng(seed),
    )
    return MeasuringBench(
        table.X,
        y,
        questions,
        [rows[part] for part in folds],
        seed,
        groups,
        effort,
        progress,
    )


def crossfit_model(
    bench: MeasuringBench,
    title: str,
    model: JudgedEstimator,
    *,
    is_main: bool = False,
) -> tuple[ComparedModel, Predictions]:
    """Cross-fit a model; return its held-out figures and predictions.

    Args:
        is_main: Whether it is the calibrator that the page is about.
    """
    with show_stage(bench.progress, f"Cross-fitting: {title}"):
        predictions = bench.predictions(model, bench.X, bench.questions)
        figures = assess_predictions(
            predictions,
            bench.rng,
            bench.effort.resamples,
            bench.smece_resamples(is_main=is_main),
        )
        return ComparedModel(title, figures), predictions


def measure_saved(
    bench: MeasuringBench,
    model: JudgedEstimator,
    own_predictions: Predictions,
    seen_texts: int | None,
) -> list[ComparedModel]:
    """Measure the saved calibrator if all texts are new to it; else return nothing."""
    if seen_texts != 0:
        return []

    # a prediction for each judgment, as this model expects it of this judge
    judgments = bench.given
    proba = model.predict_proba(bench.X[judgments.row], judgments.names().tolist())
    predictions = pair_predictions_with_judgments(proba, judgments, bench.questions.scale())
    figures = assess_predictions(
        predictions,
        bench.rng,
        bench.effort.resamples,
        bench.smece_resamples(is_main=False),
    )
    behind = estimate_difference_of_prediction_measure(
        predictions,
        own_predictions,
        "log_loss",
        bench.rng,
        bench.effort.resamples,
    )

    return [ComparedModel("the kept one as it is", figures, behind)]


def measure_baselines(
    bench: MeasuringBench,
    model: JudgedEstimator,
    own_predictions: Predictions,
) -> Iterator[ComparedModel]:
    """Yield all quick models with usual settings, and how far each is behind."""
    # the judge's answer as it is comes first, then models that learn
    others = []
    for name in list_model_names():
        if name not in BASELINE_MODELS:
            others.append(name)

    for name in (*BASELINE_MODELS, *others):
        # neither slow models nor the calibrator's own kind are a baseline
        kind = None
        if name not in SLOW_MODELS:
            kind = get_model_class(name)
        if kind is None or kind is type(model):
            continue
        try:
            compared, predictions = crossfit_model(bench, kind.title, kind())
        except WrongUse as error:
            # a model that doesn't suit these tables is listed with the reason
            yield ComparedModel(kind.title, None, why_not=error.what)
        else:
            yield replace(
                compared,
                behind=estimate_difference_of_prediction_measure(
                    predictions, own_predictions, "log_loss", bench.rng, bench.effort.resamples
                ),
            )


def choose_quick_model(model: JudgedEstimator, ordinal: bool = True) -> JudgedEstimator:
    """Return a fast substitute for repeated fits: the heaviest member, or another model.

    Of several, those that look at the main question alone, or at no text, have nothing to say of
    the other questions.

    Args:
        ordinal: Whether the main question is; if not, the network alone looks at the texts.
    """
    # an ensemble has members; any other model is its own only member
    members = getattr(model, "members_", (model,))
    weights = getattr(model, "weights_", np.ones(1))
    slow = SLOW_MODELS if ordinal else SLOW_MODELS - {STAND_IN_MODEL_FOR_CLASSES}
    quick = []
    for place, member in enumerate(members):
        if get_model_name(member) not in slow:
            quick.append(place)

    # of several members, those that ignore the other questions can't tell what these are worth
    if len(members) == 1:
        telling = quick
    else:
        telling = []
        for place in quick:
            if get_model_name(members[place]) not in MODELS_BLIND_TO_QUESTIONS:
                telling.append(place)

    # no member is quick enough or can tell: another model stands in
    if not telling:
        stand_in = get_model_class(STAND_IN_MODEL if ordinal else STAND_IN_MODEL_FOR_CLASSES)()
    else:
        stand_in = clone(members[max(telling, key=lambda place: float(weights[place]))])

    # a network that is fitted a hundred times does without a search and with few seeds
    if get_model_name(stand_in) == STAND_IN_MODEL_FOR_CLASSES:
        stand_in.set_params(search=None, seeds=FEW_NETWORK_SEEDS)

    return stand_in


def measure_subgroups(
    bench: MeasuringBench,
    predictions: Predictions,
    table: AnswerTable,
    judged: JudgmentTable,
) -> dict[str, dict[str, PredictionQuality]]:
    """Measure figures by group, for columns of few groups, and by judge."""
    rows = bench.given.row.tolist()
    # the group of each judgment's text, from columns of few groups
    columns = {}
    for column, of_text in pair_group_columns(table, judged).items():
        if len(set(of_text)) <= MAX_GROUPS_SHOWN:
            values_of_rows = []
            for row in rows:
                values_of_rows.append(of_text[row] or "none")

            columns[LLM_JUDGE_COLUMN if column == JUDGE_COLUMN else column] = values_of_rows

    # the people who judged are groups, too
    judges = []
    for name in bench.given.names().tolist():
        judges.append(name or "nobody known")

    if len(set(judges)) <= MAX_JUDGES_SHOWN:
        columns[JUDGE_COLUMN] = judges

    # a column of a single group would repeat the figures of all texts
    assessments = {}
    for column, labels in columns.items():
        if len(set(labels)) > 1:
            assessed = assess_predictions_by_group(
                predictions,
                labels,
                bench.rng,
                bench.effort.resamples,
                smece_resamples=0,
            )
            assessed_in_order = {}
            for label in sorted(set(labels), key=make_natural_key):
                assessed_in_order[label] = assessed[label]

            assessments[column] = assessed_in_order

    return assessments


def measure_question_gains(
    bench: MeasuringBench, model: JudgedEstimator
) -> tuple[QuestionGain, ...]:
    """Measure how much log-loss rises without the answers to each question, cross-fitted."""
    # without its only question a model has nothing to predict from
    questions = [scale.question for scale in bench.questions.asked]
    if len(questions) < 2:
        return ()

    # log-loss with every question, which the others are subtracted from
    whole = bench.predictions(model, bench.X, bench.questions)
    rows = []
    for question in questions:
        with show_stage(bench.progress, f"Without question {question}"):
            # the question counts as not asked, and its columns of X go
            other_scales = []
            for s in bench.questions.scales:
                other_scales.append(replace(s, asked=s.asked and s.question != question))

            scales = tuple(other_scales)
            columns = np.delete(
                np.arange(bench.X.shape[1]),
                bench.questions.blocks[question],
            )
            try:
                fewer = bench.predictions(
                    model,
                    bench.X[:, columns],
                    Questionnaire(scales, bench.questions.main),
                )
            except WrongUse as error:
                # not every model can be fitted to the questions that are left
                gain = Figure(None, n=len(whole), undefined=error.what)
            else:
                gain = estimate_difference_of_prediction_measure(
                    fewer,
                    whole,
                    "log_loss",
                    bench.rng,
                    bench.effort.resamples,
                )

            rows.append(QuestionGain(question, gain))

    return tuple(rows)


def measure_learning_curve(
    bench: MeasuringBench, model: JudgedEstimator
) -> tuple[LearningPoint, ...]:
    """Measure log-loss by number of labels."""
    with show_stage(bench.progress, "Learning curve"):
        points = compute_learning_curve(
            model,
            bench.X,
            bench.y,
            bench.questions,
            bench.folds,
            bench.rng,
            LEARNING_CURVE_SHARES,
            bench.effort.draws,
        )

    learning_points = []
    for p in points:
        learning_points.append(
            LearningPoint(
                p.share, p.labels, p.mean("log_loss"), p.deviation("log_loss"), len(p.repeats)
            )
        )

    return tuple(learning_points)


def measure_leverages(model: JudgedEstimator, bench: MeasuringBench) -> tuple[Leverage, ...]:
    """Measure leverages of the kept model on the answers in X.

    Not on judges' predicted answers: the network has other weights for these than for the main
    question, so that the ratio of their gradients means nothing.
    """
    with show_stage(bench.progress, "Leverage"):
        return tuple(compute_leverages(model, bench.X, bench.rng))


@contextmanager
def show_stage(progress: Progress, name: str) -> Iterator[None]:
    """Show a bar for one step."""
    progress.start(name, 1)
    yield
    progress.advance(name)


DENSITY_RESAMPLES = 200
DENSITY_PLACES = 61
"""At which a density is drawn."""
TAIL_SHARE, MAX_TAIL_TEXTS = 0.1, 10
"""Share of the texts that is the lower tail, and the most of them that are listed."""


def predict_subsets(
    models: Mapping[str, JudgedEstimator],
    X: Floats,
    texts: Sequence[str],
    groups: Mapping[str, Sequence[str]],
    logs: Mapping[str, Conversation],
    rng: np.random.Generator,
) -> Iterator[PredictedScores]:
    """Yield what is predicted of all texts and of each subset, for each question whose answers have an order.

    Args:
        models: By question, each tuned to its own.
        groups: By column, the group of each text.
        logs: Conversations by the id of the text.
    """
    # objects, not fixed-width strings, so that a mask selects ids as they are
    named = np.array(texts, dtype=object)
    for question, model in models.items():
        scale = model.questionnaire_.scale(question)
        if not scale.ordinal or not len(named):
            continue
        # the prediction of many judges takes long: some of them stand for all
        judges = model.judges_
        if len(judges) > MAX_JUDGES_SHOWN:
            judges = tuple(
                rng.choice(
                    np.array(judges, dtype=object),
                    MAX_JUDGES_SHOWN,
                    replace=False,
                )
            )

        # `[text, judge]`, expected answers; densities are drawn over the whole scale
        predicted = model.predict_each(X, judges, question)
        mesh = np.linspace(min(scale.values), max(scale.values), DENSITY_PLACES)
        for column, group, rows in _iterate_subsets(groups, len(named)):
            yield _predict_density(
                question,
                column,
                group,
                mesh,
                predicted[rows],
                named[rows],
                logs,
                rng,
            )


def _iterate_subsets(
    groups: Mapping[str, Sequence[str]], texts: int
) -> Iterator[tuple[str, str, Ints]]:
    # all texts first, then each group of columns that have few
    yield "", "", np.arange(texts)
    for column, labels in groups.items():
        named_labels = set()
        for label in labels:
            if label:
                named_labels.add(label)

        names = sorted(named_labels, key=make_natural_key)
        if 1 < len(names) <= MAX_GROUPS_SHOWN:
            for name in names:
                yield (column, name, np.flatnonzero(np.array(labels, dtype=object) == name))


def _predict_density(
    question: str,
    column: str,
    group: str,
    mesh: Floats,
    predicted: Floats,
    texts: np.ndarray[tuple[int], np.dtype[np.object_]],
    logs: Mapping[str, Conversation],
    rng: np.random.Generator,
) -> PredictedScores:
    # a text's score is the mean over its judges
    scores = predicted.mean(axis=1)
    kernel = _make_kernel(mesh, scores)
    count, judges = predicted.shape
    draws = []
    means = []
    # texts and judges are both samples: each resample draws both anew
    for _ in range(DENSITY_RESAMPLES if count >= MIN_UNITS_FOR_INTERVAL else 0):
        weights = rng.multinomial(count, np.full(count, 1 / count))
        again = predicted @ (rng.multinomial(judges, np.full(judges, 1 / judges)) / judges)
        draws.append(kernel @ _count_on_mesh(mesh, again, weights))
        means.append(float(again @ weights) / count)

    # the interval of the density at each place `[place]`, and that of the mean
    tails = (1 - CONFIDENCE_LEVEL) / 2, (1 + CONFIDENCE_LEVEL) / 2
    low, high = np.quantile(draws, tails, axis=0).tolist() if draws else ([], [])
    least, most = np.quantile(means, tails).tolist() if means else (None, None)
    # texts of the lower tail, the lowest first
    order = np.argsort(scores, kind="stable")[
        : min(MAX_TAIL_TEXTS, max(1, round(TAIL_SHARE * count)))
    ]

    tail = []
    for place in order.tolist():
        tail.append(
            TailText(
                texts[place], float(scores[place]), getattr(logs.get(texts[place]), "turns", ())
            )
        )

    return PredictedScores(
        question=question,
        column=column,
        group=group,
        mean=Figure(float(scores.mean()), least, most, n=count, units=count),
        mesh=mesh.tolist(),
        density=(kernel @ _count_on_mesh(mesh, scores, np.ones(count))).tolist(),
        low=low,
        high=high,
        tail=tuple(tail),
    )


def _count_on_mesh(mesh: Floats, scores: Floats, weights: Floats | Ints) -> Floats:
    # each score counts at the nearest place, as a share of all weights
    step = mesh[1] - mesh[0]
    nearest = np.clip(np.rint((scores - mesh[0]) / step), 0, len(mesh) - 1).astype(np.int64)
    return np.asarray(np.bincount(nearest, weights, len(mesh)) / weights.sum())


def _make_kernel(mesh: Floats, scores: Floats) -> Floats:
    """Return a normal kernel between places `[place, place]`, mirrored at the ends: no answer lies beyond them.

    Its width is Silverman's rule of thumb (1986, "Density Estimation", eq. 3.31).
    """
    # the range between quartiles is robust, but 0 where most scores are the same
    middle = np.subtract(*np.quantile(scores, [0.75, 0.25])) / 1.34
    spread = min(float(scores.std()), float(middle)) or float(scores.std())
    # a width of less than a step and a half would show the mesh, not the scores
    width = max(0.9 * spread * len(scores) ** -0.2, 1.5 * (mesh[1] - mesh[0]))
    first = mesh[0]
    last = mesh[-1]
    # reflections at both ends give back what the curve loses beyond them
    images = (mesh, 2 * first - mesh, 2 * last - mesh)
    away = []
    for image in images:
        away.append((mesh[:, None] - image[None, :]) / width)

    return np.asarray(
        sum(np.exp(-0.5 * distance**2) for distance in away) / (width * np.sqrt(2 * np.pi))
    )


SOURCE_COLUMN = "source"
"""Column of a table of judgments that says where each came from, as the application exports it."""


@dataclass(frozen=True)
class CalibrationReport(Result):
    """A calibrator's held-out figures, those of simpler models, and their page."""

    out: Path
    tables: TablesRead
    data: CalibrationData

    @property
    def faults(self) -> tuple[TableIssue, ...]:
        return self.data.faults

    def told(self) -> TerminalLines:
        """Yield the comparison with simpler models, and where the page is."""
        yield from self.tables.told()
        data = self.data
        rows: list[tuple[str, ...]] = []
        # a row for each model; of one that could not be fitted the reason
        for model in data.compared:
            if (assessment := model.assessment) is None:
                rows.append((model.title, f"not fitted: {model.why_not}"))
                continue
            # where only the calibrator's smECE has an interval, that of others is a plain number
            resampled = (
                assessment.smece.low is not None
                or data.own.smece.low is None
                or assessment.smece.value is None
            )
            if resampled:
                error = f"{assessment.smece}"
            else:
                error = f"{assessment.smece.value:.3f}"

            rows.append(
                (
                    model.title,
                    *(
                        f"{figure}"
                        for figure in (assessment.log_loss, assessment.rmse, assessment.pearson)
                    ),
                    error,
                )
            )

        yield TerminalTable(
            (f"held out, {data.labels} labels", "log-loss", "RMSE", "Pearson", "smECE"),
            rows,
        )
        if data.texts < MIN_UNITS_FOR_INTERVAL:
            yield f"No interval: fewer than {MIN_UNITS_FOR_INTERVAL} texts are behind the figures."

        yield f"{data.title}: {data.support}"
        yield f"Wrote {self.out}"

    def as_json(self) -> JsonDict:
        data = self.data
        # the first is the calibrator itself, whose figures stand on their own
        others = {}
        for m in data.compared[1:]:
            others[m.title] = {
                "figures": _make_figures_json(m.assessment),
                "behind": m.behind and asdict(m.behind),
            }

        predicted = []
        for prediction in data.predicted:
            predicted.append(
                {
                    "question": prediction.question,
                    "column": prediction.column,
                    "group": prediction.group,
                    "mean": asdict(prediction.mean),
                }
            )

        return self.of(
            *(
                "out",
                "model=data.title",
                *(f"{name}=data.{name}" for name in ("main", "texts", "labels", "judges")),
            ),
            *(
                "calibrated=data.support.enough",
                "missing_labels=data.support.missing",
                "learned_from=data.learned_from",
            ),
        ) | {
            "choice": None if data.choice is None else data.choice.facts(),
            "figures": _make_figures_json(data.own),
            "alpha": asdict(data.agreement),
            "others": others,
            "subgroups": {
                column: {
                    name: _make_figures_json(assessment) for name, assessment in groups.items()
                }
                for column, groups in data.subgroups.items()
            },
            "gains": {gain.question: asdict(gain.gain) for gain in data.gains},
            "learning": [asdict(point) for point in data.learning],
            "leverage": {leverage.question: asdict(leverage) for leverage in data.leverages},
            "predicted": predicted,
            **write_faults_json(data.faults),
        }


def report_calibrator(
    folder: Path,
    answers: str,
    judgments: str,
    *,
    out: Path,
    seed: int = 0,
    quick: bool = False,
    texts: Sequence[str] = (),
    progress: Progress | None = None,
) -> CalibrationReport:
    """Measure a calibrator beside simpler models and write a page about it.

    Args:
        folder: A calibrator's folder.
        texts: Logs of the texts, for the page to show those that are predicted lowest.
        quick: Draw fewer resamples: rougher intervals, sooner.

    Raises:
        BadCalibrator: There is no calibrator, or it can't be trusted.
        BadInput: A table can't be read, or only one text has a judgment of the main question.
    """
    # before the long work: the page must be writable, and must not replace an input
    require_writable_output_path(
        out,
        answers,
        judgments,
        folder,
        folder / CALIBRATOR_FILE_NAME,
        folder / TRAINING_FILE_NAME,
        *texts,
    )
    # logs serve only to show the turns of the texts that are predicted lowest
    if texts:
        read = logs_from(texts, ReadOptions(), progress or NullProgress()).conversations
    else:
        read = []

    tables, data = measure_calibrator(
        folder,
        answers,
        judgments,
        seed=seed,
        quick=quick,
        logs={conversation.id: conversation for conversation in read},
        progress=progress,
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, calibration_page(data))

    return CalibrationReport(out, tables, data)


def measure_calibrator(
    folder: Path,
    answers: str,
    judgments: str,
    *,
    seed: int = 0,
    quick: bool = False,
    logs: Mapping[str, Conversation] | None = None,
    progress: Progress | None = None,
) -> tuple[TablesRead, CalibrationData]:
    """Measure a calibrator beside simpler models; see `report_calibrator`."""
    find_files_of_sources([answers, judgments])
    calibrators = load_each(folder)
    training = read_training_record(folder)
    # all questions share the tables; the first calibrator is that of the main one
    model = next(iter(calibrators.values()))
    # tables are read by the scales that the calibrator knows, not by what they hold
    table = read_answers(answers, scales=model.questionnaire_.asked)
    judged = read_judgments(judgments, table, questionnaire=model.questionnaire_)
    refitted, groups, unlike = rebuild_unfitted_model(model, training.shift, table, judged)
    bench = split_bench(
        table,
        judged,
        seed,
        groups,
        QUICK_EFFORT if quick else ReportEffort(),
        progress or NullProgress(),
    )
    facts = {
        "pollex": version("pollex"),
        "calibrator": str(folder),
        "answers": answers,
        "judgments": judgments,
    }
    # how many judgments came from where, if the table says so
    if sources := (named := pair_group_columns(table, judged)).get(SOURCE_COLUMN):
        rows = judged.judgments.of_question(judged.questionnaire.index()).row.tolist()
        counted = Counter(sources[row] or "unknown" for row in rows)
        facts["sources"] = ", ".join(f"{name} ({n:,})" for name, n in counted.most_common())

    with show_stage(bench.progress, "Predicting every question"):
        seen_rows = training.seen(table)
        title = name_for_people(model)
        crossfitted, predictions = crossfit_model(
            bench,
            title,
            refitted,
            is_main=True,
        )
        # judgments of the main question, which all figures are about
        judged_rows = bench.given
        scale = bench.questions.scale()
        level: MeasurementLevel = "ordinal" if scale.ordinal else "nominal"
        # gains and the learning curve take many fits: a quick model stands in for the calibrator
        worker = choose_quick_model(model, scale.ordinal)
        mesh, responses = compute_response_curves(model, bench.X, judged_rows)
        judge_names = set()
        for name in judged_rows.names():
            if name is not None:
                judge_names.add(name)

        data = CalibrationData(
            title=title,
            worker=worker.title,
            unlike=unlike,
            main=bench.questions.main,
            values=scale.values,
            texts=len(np.unique(judged_rows.row)),
            labels=judged_rows.labels,
            judges=len(judge_names),
            folds=len(bench.folds),
            seed=bench.seed,
            learned_from=seen_rows,
            support=LabelSupport(judged_rows.labels),
            agreement=estimate_krippendorff_alpha(
                judged_rows.row,
                judged_rows.judge,
                judged_rows.answer,
                scale.values,
                level,
                bench.rng,
                bench.effort.resamples,
            ),
            choice=find_model_choice(model),
            compared=(
                crossfitted,
                *measure_saved(bench, model, predictions, seen_rows),
                *measure_baselines(bench, model, predictions),
            ),
            reliabilities=tuple(
                make_reliability_diagrams(
                    predictions.proba, judged_rows.answer, judged_rows.row, scale.values
                )
            ),
            subgroups=measure_subgroups(bench, predictions, table, judged),
            mesh=mesh,
            responses=responses,
            gains=measure_question_gains(bench, worker),
            learning=measure_learning_curve(bench, worker),
            leverages=measure_leverages(model, bench),
            faults=(*table.faults, *judged.faults),
            predicted=tuple(
                predict_subsets(calibrators, table.X, table.texts, named, logs or {}, bench.rng)
            ),
            facts=facts,
        )

    return TablesRead.of(table, judged), data


def _make_figures_json(assessment: PredictionQuality | None) -> JsonDict | None:
    if assessment is None:
        return None
    figures = {}
    for name, value in vars(assessment).items():
        if isinstance(value, Figure):
            figures[name] = asdict(value)

    return figures
