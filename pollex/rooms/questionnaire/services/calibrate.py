"""Use cases of calibration: fit a calibrator to judgments, and predict judgments of new texts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pollex.calibration import CALIBRATOR_FILE_NAME
from pollex.calibration.judgments import UNKNOWN_JUDGE_CODE
from pollex.calibration.models import get_model_class, get_model_name
from pollex.calibration.storage import is_calibrator_file, load_each, save
from pollex.errors import WrongUse
from pollex.formats.files import find_files_of_sources
from pollex.formats.write import require_known_ending, require_writable_output_path, write_rows
from pollex.graphs.context import NullProgress, Progress
from pollex.measures.intervals import LabelSupport
from pollex.outputs import require_replaceable
from pollex.rooms.questionnaire.calibration.model_choice import ModelChoice
from pollex.rooms.questionnaire.formats.answers import AnswerTable, TableIssue
from pollex.rooms.questionnaire.formats.judgments import (
    JudgmentTable,
    TrustedJudges,
    list_prediction_columns,
    make_prediction_rows,
)
from pollex.rooms.questionnaire.formats.read_tables import read_answers, read_judgments
from pollex.rooms.questionnaire.services.training_record import (
    TRAINING_FILE_NAME,
    is_training_record_file,
    read_training_record,
    write_training_record,
)
from pollex.services.results import Result, TabularResult
from pollex.text import JsonDict, TerminalLine, TerminalLines, format_count, render_notes

if TYPE_CHECKING:
    # scikit-learn comes with it, and takes a second to import
    from pollex.calibration.estimator import JudgedEstimator
    from pollex.calibration.questionnaire import Questionnaire

AUTHORS_NETWORK_SETTINGS = {
    "h1": 25,
    "h2": 25,
    "batch": 64,
    "rate": 0.001,
    "pretraining": 20,
    "finetuning": 30,
    "seeds": 1,
}
"""Settings of the authors' recipe that the released weights were made with."""


@dataclass(frozen=True)
class TablesRead:
    """Counts of what two tables hold, and what was left out.

    Attributes:
        judged_main: Judgments of the main question.
        labels: Answers to the main question; a text that one judge judged again counts once.
        unnamed: Judgments that name no judge.
    """

    main: str
    texts: int
    questions: int
    judgments: int
    judged_main: int
    labels: int
    judges: int
    unnamed: int
    faults: tuple[TableIssue, ...]

    @classmethod
    def of(cls, table: AnswerTable, judged: JudgmentTable) -> TablesRead:
        judgments = judged.judgments
        # only labels of the main question decide whether there are enough
        of_main = judged.judgments.of_question(judged.questionnaire.index())
        return cls(
            main=judged.questionnaire.main,
            texts=len(table.texts),
            questions=len(table.scales),
            judgments=len(judgments),
            judged_main=len(of_main),
            labels=of_main.labels,
            judges=len(judgments.judges),
            unnamed=int((judgments.judge == UNKNOWN_JUDGE_CODE).sum()),
            faults=(*table.faults, *judged.faults),
        )

    def told(self) -> TerminalLines:
        """Yield what was read, and what was left out."""
        unnamed = ""
        if self.unnamed:
            unnamed = f"; {format_count(self.unnamed, 'judgment names', 'judgments name')} none"

        yield (
            f"{format_count(self.texts, 'text')} with answers to {format_count(self.questions, 'question')}; "
            f"{format_count(self.judgments, 'judgment')}, "
            f"{self.judged_main} of them of the main question {self.main!r}; "
            f"{format_count(self.judges, 'judge')}{unnamed}"
        )
        yield from describe_faults(self.faults)


@dataclass(frozen=True, repr=False)
class FittedCalibrator(TabularResult):
    """A calibrator that was fitted and saved.

    Attributes:
        out: Its folder.
        choice: What a model that chooses among others or among settings chose, in sentences.
        questions: What it can predict, the main one first.
        refused: Why there is none for other questions that people answered.
    """

    out: Path
    model: str
    tables: TablesRead
    choice: tuple[str, ...]
    questions: tuple[str, ...]
    refused: Mapping[str, str]

    @property
    def support(self) -> LabelSupport:
        """Whether there are enough labels to call it calibrated."""
        return LabelSupport(self.tables.labels)

    @property
    def headline(self) -> str:
        return f"{self.model}, {format_count(self.tables.labels, 'label')} of {self.tables.main!r}"

    def records(self) -> list[dict[str, object]]:
        plain_values = {}
        for name, value in self.as_json().items():
            if not isinstance(value, list):
                plain_values[name] = value
        return [plain_values]

    @property
    def faults(self) -> tuple[TableIssue, ...]:
        return self.tables.faults

    def told(self, next_command: str = "") -> TerminalLines:
        """Yield the tables read, the model chosen, and the next command."""
        yield from self.tables.told()
        yield from self.choice
        yield f"{self.model}: {self.support}"
        if len(self.questions) > 1:
            yield f"Predicts {', '.join(self.questions)}, each by a calibrator of its own"

        yield from render_notes(f"none for {name!r}: {why}" for name, why in self.refused.items())
        yield f"Wrote {self.out}. Measure it next: {next_command}"

    def as_json(self) -> JsonDict:
        return self.of(
            *("out", "model"),
            *(
                f"{name}=tables.{name}"
                for name in ("main", "texts", "labels", "judgments", "judges")
            ),
            *(
                "calibrated=support.enough",
                "missing_labels=support.missing",
                "choice",
                "questions",
                "refused",
            ),
        ) | write_faults_json(self.faults)


@dataclass(frozen=True)
class PredictionResult(Result):
    """Predictions that were written to a file.

    Attributes:
        learned_from: Texts that the calibrator was fitted on; None if unknown.
        labels: Labels that the calibrator was fitted on; None if unknown.
        unknown_judges: Judges that were asked for and not seen in training.
    """

    out: Path
    model: str
    texts: int
    questions: tuple[str, ...]
    learned_from: int | None
    labels: int | None
    unknown_judges: tuple[str, ...]
    faults: tuple[TableIssue, ...]

    @property
    def support(self) -> LabelSupport | None:
        """Whether there were enough labels to call it calibrated; None if unknown."""
        if self.labels is None:
            return None
        return LabelSupport(self.labels)

    def told(self) -> TerminalLines:
        """Yield warnings, and what was written."""
        yield from describe_faults(self.faults)
        if self.unknown_judges:
            names = ", ".join(self.unknown_judges)
            yield from render_notes([f"unknown judges get the shared part: {names}"])

        yield from render_notes(self.optimism)
        question_count = ""
        if len(self.questions) > 1:
            question_count = f", {format_count(len(self.questions), 'question')}"

        supported = "" if self.support is None else f"; {self.support}"
        yield f"Wrote {self.out}: {format_count(self.texts, 'text')}{question_count}, {self.model}{supported}"

    @property
    def optimism(self) -> list[str]:
        """Warn of predictions for texts that the calibrator may have been fitted on."""
        better = "predictions of those look better than they are"
        # without a record nobody can tell which texts it has seen
        if self.learned_from is None:
            why = f"there is no {TRAINING_FILE_NAME} of this calibrator, so it isn't known which texts it was fitted on"
            return [f"{why}: {better}"]

        return [
            f"the calibrator was fitted on {self.learned_from} of these texts: {better}"
        ] * bool(self.learned_from)

    def as_json(self) -> JsonDict:
        return (
            self.of("out", "texts", "questions", "learned_from")
            | {"strangers": list(self.unknown_judges)}
            | {"calibrated": self.support is not None and self.support.enough}
            | write_faults_json(self.faults)
        )


def calibrate(
    answers: str,
    judgments: str,
    *,
    out: Path,
    main: str | None = None,
    nominal: Sequence[str] = (),
    options: Mapping[str, Sequence[float]] | None = None,
    shift: str | None = None,
    model: str | None = None,
    network: bool = False,
    main_only: bool = False,
    settings: Mapping[str, object] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> FittedCalibrator:
    """Fit a calibrator to judgments and save it as JSON with its arrays beside it.

    Args:
        answers: Table of the judge's answers, a row an option.
        judgments: Table of people's answers, a row a judgment.
        out: Folder to save it in.
        main: Question to predict; Q0 or `overall` if None.
        nominal: Questions whose options have no order.
        options: All options by question, where the tables don't show them.
        shift: Column of groups to leave out in turn when the model is chosen.
        model: Name of a calibration model; None: the network, or `best` where something is said of
            the choice.
        network: Whether the calibration network is among the models to choose from.
        main_only: Whether only the main question is predicted, not every one that people answered.
        settings: Rare settings of the calibration network; with one, it begins from nothing.

    Raises:
        BadInput: A table can't be read, or has too little in it.
        WrongUse: No such model, question, or column; or `out` can't be written.
    """
    progress = progress or NullProgress()
    # before the long work: files must be there, and nothing may be replaced
    require_writable_output_path(out / CALIBRATOR_FILE_NAME, answers, judgments, named=False)
    # a calibrator is known by itself: it may be fitted where there is no store
    require_replaceable(out / CALIBRATOR_FILE_NAME, recognizes=is_calibrator_file)
    require_replaceable(out / TRAINING_FILE_NAME, recognizes=is_training_record_file)
    find_files_of_sources([answers, judgments])
    # who says something about the choice wants a model that chooses
    model = model or ("best" if network or shift is not None else "network")
    if not (kind := get_model_class(model)).uses_labels:
        what = f"{model!r}, the {kind.title}, learns nothing from judgments, so there is nothing to fit"
        raise WrongUse(
            what,
            hint="name another model; `pollex calibrate report` has this one beside every other",
        )

    # settings that this kind of model has, and those of the network
    estimator = kind(
        **build_model_settings(kind, seed, shift, network=network)
        | complete_network_settings(kind, settings or {})
    )
    table = read_answers(
        answers,
        options={name: tuple(option) for name, option in (options or {}).items()},
        nominal=[],
    )
    judged = read_judgments(judgments, table, main=main, nominal=nominal)
    # without settings from the user, the network begins as ordinal mixed effects
    if model == "network" and not settings:
        estimator.set_params(**build_mixed_start_settings(judged.questionnaire))

    stage = f"Fitting: {kind.title or model}"
    progress.start(stage, 1)
    # each group is left out in turn while the model is chosen
    groups = None
    if shift is not None:
        estimator.set_params(shift=True)
        groups = shift_groups(table, judged, shift)

    fitted = estimator.fit(
        table.X,
        judged.judgments,
        questions=judged.questionnaire,
        groups=groups,
    )
    progress.advance(stage)
    # every other question that people answered gets a calibrator of its own
    others, refused = (
        ([], {}) if main_only else _list_other_candidates(fitted, table, judged, groups, progress)
    )
    file = save(fitted, out, others)
    # which texts it saw is kept beside it, for warnings when it predicts these
    read = TablesRead.of(table, judged)
    write_training_record(file, table, judged, shift, [answers, judgments])

    return FittedCalibrator(
        out,
        name_for_people(fitted),
        read,
        tuple(describe_model_choice(fitted)),
        (read.main, *(other.questionnaire_.main for other in others)),
        refused,
    )


def predict_judgments(
    folder: Path,
    answers: str,
    *,
    out: Path,
    judges: Sequence[str] = (),
    aggregate: TrustedJudges = "mean",
    questions: Sequence[str] = (),
    pre_trained: bool = False,
    progress: Progress | None = None,
) -> PredictionResult:
    """Predict what people would say of texts, and write one row for each text and question.

    Args:
        folder: A calibrator's folder.
        judges: People who are trusted; nobody: all that it was fitted to.
        aggregate: How their answers become one; a number is a quantile, `unknown` an unknown judge
            in their place.
        questions: Ids; `all` for every one, nothing for the main one.
        pre_trained: Whether other questions are predicted by the main one's calibrator before it
            was tuned to that.

    Raises:
        BadCalibrator: There is no calibrator, or it can't be trusted.
        BadInput: The table can't be read.
        WrongUse: `out` has no known format or can't be written, or answers without order are to be
            aggregated.
    """
    require_known_ending(out, answers)
    find_files_of_sources([answers])
    # answers are read by the scales of the main question's calibrator, which all share
    calibrators = load_each(folder)
    main, model = next(iter(calibrators.items()))
    table = read_answers(answers, scales=model.questionnaire_.asked)
    training = read_training_record(folder)
    progress = progress or NullProgress()
    progress.start("predict", 1)
    # each question once, in the order in which it was asked for
    questions_wanted = list(dict.fromkeys(questions)) or [main]
    # before it was tuned, the network knew all questions; else only those with a calibrator
    if "all" in questions_wanted:
        if pre_trained:
            questions_wanted = [scale.question for scale in model.questionnaire_.scales]
        else:
            questions_wanted = [*calibrators]

    if pre_trained and get_model_name(model) != "network":
        what = f"the calibration network alone has pre-trained weights, and this is a {name_for_people(model)}"
        raise WrongUse(
            what,
            hint="fit with the network, or leave it out",
            option="pre_trained",
        )

    rows: list[dict[str, object]] = []
    for name in questions_wanted:
        # fails for a question that the questionnaire doesn't have
        model.questionnaire_.index(name)
        if not pre_trained and name not in calibrators:
            what = f"the calibrator was fitted for {', '.join(calibrators)}, and not for {name!r}"
            network = get_model_name(model) == "network"
            if network:
                other = "take the weights before they were tuned"
            else:
                other = "with `--model best`, if it has no order"

            hint = f"fit it again with judgments of it, or {other}"
            raise WrongUse(
                what,
                hint=hint,
                option="pre_trained" if network else "question",
            )

        rows += make_prediction_rows(
            model if pre_trained else calibrators[name],
            table,
            judges,
            aggregate,
            name,
        )

    # questions have different options: what one row lacks is empty there
    columns = list_prediction_columns(rows)
    write_rows(out, [dict.fromkeys(columns) | row for row in rows], columns)
    progress.advance("predict")

    unknown_judges = []
    for name in judges:
        if name not in model.judges_:
            unknown_judges.append(name)
    return PredictionResult(
        out=out,
        model=name_for_people(model),
        texts=len(table.texts),
        questions=tuple(questions_wanted),
        learned_from=training.seen(table),
        labels=training.labels,
        unknown_judges=tuple(unknown_judges),
        faults=tuple(table.faults),
    )


def build_model_settings(
    kind: type[JudgedEstimator],
    seed: int,
    shift: str | None,
    *,
    network: bool,
) -> JsonDict:
    """Return the settings to make a model with.

    Raises:
        WrongUse: The model doesn't choose among others, and something is said of how.
    """
    # settings that the kind doesn't know are refused where the user gave them, else left out
    param_names = kind._get_param_names()
    settings = {"seed": seed}
    for name, is_set in {"shift": shift is not None, "network": network}.items():
        if is_set and name not in param_names:
            what = f"{kind.title} chooses nothing, so {name} means nothing to it"
            raise WrongUse(
                what,
                hint="leave one of these out",
                option={name: None, "model": None},
            )

    model_settings = {}
    for name, value in settings.items():
        if name in param_names:
            model_settings[name] = value
    return model_settings | ({"network": True} if network else {})


def complete_network_settings(
    kind: type[JudgedEstimator], settings: Mapping[str, object]
) -> dict[str, object]:
    """Return settings that were given to the calibration network; the authors' recipe brings the authors' own.

    Raises:
        WrongUse: Another model was named.
    """
    # only the network has settings of its own
    if settings and kind is not get_model_class("network"):
        first = next(iter(settings))
        what = f"{first} is a setting of the calibration network, and the model is another"
        raise WrongUse(
            what,
            hint="name the network, or leave the setting out",
            option={"model": "network", first: None},
        )

    # what the user sets goes before what the recipe sets
    return {**(AUTHORS_NETWORK_SETTINGS if settings.get("recipe") == "authors" else {}), **settings}


def build_mixed_start_settings(questions: Questionnaire) -> dict[str, object]:
    """Return the settings of a network that begins as ordinal mixed effects; none where answers have no order."""
    # takes a second to import
    from pollex.calibration.models.ordinal import OrdinalMixedEffects
    from pollex.calibration.thumbs import HIDDEN_UNITS_A_LAYER, NETWORK_PENALTY_STRENGTHS_TRIED

    # without an order of answers there are no ordinal mixed effects to begin from
    if not questions.scale().ordinal:
        return {}

    return {
        "start": OrdinalMixedEffects(),
        "h1": HIDDEN_UNITS_A_LAYER,
        "h2": HIDDEN_UNITS_A_LAYER,
        "strengths": NETWORK_PENALTY_STRENGTHS_TRIED,
        "seeds": MIXED_START_SEEDS,
    }


MIXED_START_SEEDS = 5
"""Networks that are averaged: one for each fold that λ is chosen by, for the time that every question takes."""


def _list_other_candidates(
    main: JudgedEstimator,
    table: AnswerTable,
    judged: JudgmentTable,
    groups: Sequence[str] | None,
    progress: Progress,
) -> tuple[list[JudgedEstimator], dict[str, str]]:
    from sklearn.base import clone  # takes a second to import

    unfitted = clone(main)
    if getattr(main, "search", None):
        unfitted.set_params(search=None)  # once, for the main question

    # questions with judgments, besides the main one
    judged_too = sorted(set(judged.judgments.question.tolist()) - {judged.questionnaire.index()})
    notes = []
    refused = {}
    stage = "Fitting the other questions"
    if judged_too:
        progress.start(stage, len(judged_too))

    # the same answers and judgments, with another question as the main one
    for number in judged_too:
        questions = replace(
            judged.questionnaire,
            main=judged.questionnaire.scales[number].question,
        )
        try:
            # all answers may be alike
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                notes.append(
                    clone(unfitted).fit(
                        table.X,
                        judged.judgments,
                        questions=questions,
                        groups=groups,
                    )
                )
        except WrongUse as error:
            # too few judgments of one question are no reason to give up the others
            refused[questions.main] = error.what

        progress.advance(stage)

    return notes, refused


def pair_group_columns(table: AnswerTable, judged: JudgmentTable) -> dict[str, tuple[str, ...]]:
    """Return the group columns of both tables, those of the answers first."""
    # a table without a column leaves it to the other table to say the group
    names = dict.fromkeys([*table.groups, *judged.groups])
    empty = ("",) * len(table.texts)
    groups: dict[str, tuple[str, ...]] = {}
    for name in names:
        groups[name] = tuple(
            table or other
            for table, other in zip(
                table.groups.get(name, empty), judged.groups.get(name, empty), strict=True
            )
        )

    return groups


def shift_groups(
    table: AnswerTable,
    judged: JudgmentTable,
    column: str,
) -> tuple[str, ...]:
    """Return the group of each text in a column.

    Raises:
        WrongUse: There is no such column, or it has one group only.
    """
    groups = pair_group_columns(table, judged)
    if column not in groups:
        if groups:
            others = f"give one of {', '.join(groups)}"
        else:
            others = "the tables have no column of groups: add one"

        raise WrongUse(f"no column is called {column!r}", hint=others)

    # a single group can't be left out
    if len(set(groups[column])) < 2:
        raise WrongUse(
            f"all texts have the same {column!r}",
            hint="leave it out",
            option="shift",
        )

    return groups[column]


def describe_model_choice(model: JudgedEstimator) -> list[str]:
    """Describe what a model chose among others or among settings, and by how much."""
    choices = (find_model_choice(model), getattr(model, "search_", None))
    sentences: list[str] = []
    for choice in choices:
        if choice is not None:
            sentences.append(f"Chosen: {choice.sentence()}")

    return sentences


def find_model_choice(model: JudgedEstimator) -> ModelChoice | None:
    """Return how a model that chooses among others chose."""
    model_choice: ModelChoice | None = getattr(model, "choice_", None)
    return model_choice


def name_for_people(model: JudgedEstimator) -> str:
    """Return the model's title; for one that chooses among others, what it chose."""
    choice = find_model_choice(model)
    if choice is None:
        return model.title

    names = [choice.trials[place].name for place in choice.weights]
    return f"calibrator ({names[0] if len(names) == 1 else f'{len(names)} models together'})"


def describe_faults(faults: Iterable[TableIssue]) -> TerminalLines:
    """Yield what was left out, in yellow, and what is worth knowing."""
    for fault in faults:
        yield TerminalLine(f"Left out: {fault}", "yellow") if fault.left_out else f"Note: {fault}"


def write_faults_json(faults: Iterable[TableIssue]) -> JsonDict:
    """Return what was left out and what is worth knowing as JSON values."""
    report: dict[str, list[JsonDict]] = {"left_out": [], "notes": []}
    # two lists: what is missing from the figures, and what is only worth knowing
    for fault in map(asdict, faults):
        report["left_out" if fault.pop("left_out") else "notes"].append(fault)
    return report
