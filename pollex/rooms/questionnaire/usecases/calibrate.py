"""Calibrate a judge's answers to what people say: fit, predict, report.

Tables are CSV, TSV, JSON lines, JSON or Parquet; LLM-Rubric's own TSV files are read as they are.

\b
ANSWERS    what the judge (an LLM, any source) answered, a row an option:
           text_id, question, option, probability
JUDGMENTS  what people answered, a row a judgment:
           text_id, question, judge, answer
Options and answers are numbers. Probabilities need not sum to 1: what is missing counts as doubt.
All options 0: the question doesn't apply. No row: it was not asked. Other columns are groups, such as system.

\b
Examples
  pollex calibrate fit answers.csv judgments.csv --out calibrator --main overall
  pollex calibrate report calibrator answers.csv judgments.csv --out calibration.html
  pollex calibrate predict calibrator new-answers.csv --out predictions.parquet
"""

from __future__ import annotations

import math
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pollex.usecases.families import declare_output_option
from pollex.usecases.use_case import CallContext, UseCase, declare_options, opt, use_case

if TYPE_CHECKING:
    from pollex.rooms.questionnaire.services.calibrate import FittedCalibrator, PredictionResult
    from pollex.rooms.questionnaire.services.calibration_report import CalibrationReport


def parse_question_options(text: str) -> tuple[str, tuple[float, ...]]:
    """Return a question and all its options, as `Q8=1,2,3`."""
    # the last `=` parts them: an id may hold one
    question, _, values = text.rpartition("=")
    try:
        numbers = tuple(float(value) for value in values.split(","))
    except ValueError:
        numbers = ()

    # one option alone is no question, and an infinite one has no place on a scale
    if not question or len(set(numbers)) < 2 or not all(map(math.isfinite, numbers)):
        raise ValueError("write a question and its options: Q8=1,2,3")
    return question, numbers


def parse_aggregate(text: str) -> str | float:
    """Return `mean`, `max`, a quantile, or `unknown`."""
    if text in ("mean", "max", "unknown"):
        return text

    try:
        quantile = float(text)
    except ValueError:
        quantile = math.nan

    # NaN fails here, too: it is no number from 0 to 1
    if not 0 <= quantile <= 1:
        raise ValueError("use mean, max, a quantile from 0 to 1, or unknown")
    return quantile


def declare_table(name: str) -> Any:
    """Declare a table that is read."""
    return opt(kw_only=False, place="argument", metavar=name)


def declare_seed() -> Any:
    """Declare the seed of all that draw."""
    return opt("Random seed.", default=0, least=0, most=2**32 - 1)


def declare_network_setting(help_text: str) -> Any:
    """Declare a setting of the calibration network."""
    return opt(help_text, default=None, place="setting")


class FewThreadsUseCase:
    """A use case whose matrices are small.

    Where others want the cores, waiting for a second thread takes three times as long as the work.
    """

    def call(self, name: str, context: CallContext) -> Any:
        """Call a service; OpenBLAS reads the variable when NumPy is first loaded, which the service does."""
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        return super().call(name, context)  # type: ignore[misc]


@declare_options
class NetworkSettings:
    """Settings of the calibration network."""

    recipe: Literal["shrunk", "authors"] | None = declare_network_setting(
        "Training of the calibration network: shrunk (the default), or the authors'."
    )
    personal: Literal["all", "heads", "none"] | None = declare_network_setting(
        "Layers in which each annotator has weights of their own; all if not set."
    )
    search: Literal["random"] | None = declare_network_setting(
        "Tries settings of the calibration network at random, and takes what is better; as they are given if not set."
    )
    heads: Literal["softmax", "ordinal"] | None = declare_network_setting(
        "Heads of its questions: softmax (the default), or ordinal: a cumulative link."
    )
    h1: int | None = declare_network_setting(
        "Units of its first layer; 10 if not set, 25 in the authors' recipe."
    )
    h2: int | None = declare_network_setting("Units of its second layer; likewise.")
    batch: int | None = declare_network_setting(
        "Sheets a step in the authors' recipe; 64 if not set. Otherwise a step is on all."
    )
    pretraining: int | None = declare_network_setting(
        "Its steps on all questions: 40 if not set; epochs in the authors' recipe: 20."
    )
    finetuning: int | None = declare_network_setting(
        "Its steps on the question it predicts: 40 if not set; epochs in the authors' recipe: 30."
    )
    seeds: int | None = declare_network_setting(
        "Networks whose probabilities are averaged: 10 if not set, 1 in the authors' recipe."
    )

    def as_settings(self, context: CallContext) -> dict[str, Any]:
        """Return those that were given."""
        settings = {}
        # the network's own fields, whatever else a use case has
        for name in NetworkSettings.__annotations__:
            settings[name] = getattr(self, name)
        return {name: value for name, value in settings.items() if value is not None}


@use_case("calibrate fit")
class FitCalibrator(FewThreadsUseCase, NetworkSettings, UseCase["FittedCalibrator"]):
    """Fit a calibrator, and keep it as JSON with its arrays beside it.

    The calibration network predicts. It begins as ordinal mixed effects, and learns what these
    miss; with --set it begins from nothing, with settings as given, and --set search=random tries
    settings for a minute at most on some hundred texts. --model names another model, and best,
    --shift or --network choose by cross-validation. Every question that annotators answered gets a
    calibrator of its own, for `predict --question`.

    \b
    Examples
      pollex calibrate fit answers.csv judgments.csv --out calibrator
      pollex calibrate fit answers.parquet judgments.parquet --out calibrator --main overall --nominal length
      pollex calibrate fit answers.csv thumbs.csv --out calibrator --main thumb
      pollex calibrate fit synthetic-llm.tsv synthetic-human.tsv --out calibrator --shift system
      pollex calibrate fit answers.csv judgments.csv --out calibrator --model best
      pollex calibrate fit answers.csv judgments.csv --out calibrator --set recipe=authors
    """

    does = "calibrate.calibrate"
    shown_with = ("next_command",)
    answers: str = declare_table("ANSWERS")
    judgments: str = declare_table("JUDGMENTS")
    out: Path = opt("Output folder of the calibrator.", group="Output")
    # questions, and their options where the tables don't show them all
    main: str | None = opt(
        "Id of the question to predict; default: Q0 or overall.",
        default=None,
        metavar="QUESTION",
    )
    nominal: tuple[str, ...] = opt(
        "Question whose options have no order. Repeatable.",
        default=(),
        metavar="QUESTION",
    )
    options: tuple[tuple[str, tuple[float, ...]], ...] = opt(
        "All options of a question. Repeatable.",
        default=(),
        many=True,
        parse=parse_question_options,
        metavar="QUESTION=1,2,3",
    )
    # which model, and for whom it is chosen
    shift: str | None = opt(
        "Choose the model for new groups of this column, by leaving groups out.",
        default=None,
        metavar="COLUMN",
    )
    model: str | None = opt(
        "Name of a model, or best to choose by cross-validation; default: network.",
        default=None,
        metavar="NAME",
    )
    network: bool = opt(
        "Choose by cross-validation, the network among the others (slower).",
        default=False,
    )
    main_only: bool = opt(
        "Fit nothing for annotators' other questions (faster).",
        default=False,
    )
    seed: int = declare_seed()

    def as_options(self, context: CallContext) -> dict[str, tuple[float, ...]]:
        """Return the options of questions by their names."""
        return dict(self.options)

    @property
    def next_command(self) -> str:
        """What measures the calibrator."""
        return shlex.join(
            ["pollex", "calibrate", "report", str(self.out), self.answers, self.judgments]
        )


@use_case("calibrate predict")
class PredictJudgments(FewThreadsUseCase, UseCase["PredictionResult"]):
    """Predict what people would say of texts, a row for each text and question.

    A row has text_id, question, the expected answer and its variance (empty where answers have no
    order), the entropy in nats, and a probability for each answer (p_1, p_2 …): the mean over the
    annotators that the calibrator was fitted to, or over those named with --judge, who also get a
    list `judges` with the same for each. With --aggregate max or a quantile, the expected answer is
    that of theirs. Every question has a calibrator of its own, tuned to it.

    \b
    Examples
      pollex calibrate predict calibrator new-answers.csv --out predictions.parquet
      pollex calibrate predict calibrator new-answers.csv --out predictions.jsonl --judge ann --judge bob
      pollex calibrate predict calibrator new-answers.csv --out lowest.csv --aggregate 0.1
      pollex calibrate predict calibrator new-answers.csv --out every.parquet --question all
    """

    does = "calibrate.predict_judgments"
    folder: Path = declare_table("DIR")
    answers: str = declare_table("ANSWERS")
    out: Path = opt(
        "Output file: .parquet, .jsonl or .csv.",
        default=Path("predictions.parquet"),
        group="Output",
    )

    def recognizes(self, path: Path) -> bool:
        """Tell predictions by their columns: they are written without a store, which would know of them."""
        from pollex.rooms.questionnaire.formats.judgments import holds_predictions  # as a service

        return holds_predictions(path)

    # which questions, and whose answers count
    questions: tuple[str, ...] = opt(
        "Predict this question, or all; default: the main one. Repeatable.",
        default=(),
        flag="question",
        metavar="QUESTION",
    )
    pre_trained: bool = opt(
        "Predict other questions by the network before it was tuned to the main one.",
        default=False,
    )
    judges: tuple[str, ...] = opt(
        "Trust this annotator; default: all. Repeatable.",
        default=(),
        flag="judge",
        metavar="NAME",
    )
    aggregate: str | float = opt(
        "How trusted annotators become one: mean, max, a quantile such as 0.1; or unknown: somebody else.",
        default="mean",
        parse=parse_aggregate,
        metavar="HOW",
    )


@use_case("calibrate report")
class ReportCalibrator(FewThreadsUseCase, UseCase["CalibrationReport"]):
    """Measure a calibrator beside simpler models, and write a page about it.

    All models are cross-fitted on these tables: no text is predicted by a model that saw it. The
    page holds the comparison with 95 % intervals, how predicted answers to each question are spread
    over the texts of each subset, reliability diagrams, a curve for each judge, what each question
    gains, a learning curve, and the leverage of each question. It needs nothing but itself.

    \b
    Examples
      pollex calibrate report calibrator answers.csv judgments.csv --out calibration.html
      pollex calibrate report calibrator answers.csv judgments.csv --texts log.jsonl --out calibration.html
      pollex calibrate report calibrator answers.csv judgments.csv --json | tail -n 1 | jq .figures.log_loss
    """

    does = "calibration_report.report_calibrator"
    folder: Path = declare_table("DIR")
    answers: str = declare_table("ANSWERS")
    judgments: str = declare_table("JUDGMENTS")
    out: Path = opt(
        "The page to write.",
        default=Path("calibration.html"),
        group="Output",
    )
    texts: tuple[str, ...] = opt(
        "Log of the texts: the page shows those predicted lowest. Repeatable.",
        default=(),
        metavar="LOG",
    )
    quick: bool = opt(
        "Use fewer resamples: faster, with less exact intervals.",
        default=False,
    )
    seed: int = declare_seed()
