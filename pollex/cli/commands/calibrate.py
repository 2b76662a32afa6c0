"""`pollex calibrate`: answers of your own, calibrated to human judges."""

from __future__ import annotations

import math
import os
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import click

from pollex.cli import session as cli
from pollex.cli.help import Group, Verb
from pollex.cli.options import out_option
from pollex.cli.settings import NETWORK, set_option, settings_of

ANSWERS = click.argument("answers", metavar="ANSWERS")
JUDGMENTS = click.argument("judgments", metavar="JUDGMENTS")
FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
SEED = click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0, 2**32 - 1),  # what all that draw take
    help="Random seed.",
)


class QuestionOptions(click.ParamType[tuple[str, tuple[float, ...]]]):
    """A question and all its options, as `Q8=1,2,3`."""

    name = "options"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[float, ...]]:
        question, _, values = value.rpartition("=")
        try:
            found = tuple(float(each) for each in values.split(","))
        except ValueError:
            found = ()
        if not question or len(set(found)) < 2 or not all(map(math.isfinite, found)):
            self.fail("write a question and its options: --options Q8=1,2,3", param, ctx)
        return question, found


class HowToAggregate(click.ParamType[str | float]):
    """`mean`, `max`, a quantile, or `unknown`."""

    name = "how"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str | float:
        if value in ("mean", "max", "unknown"):
            return value
        try:
            quantile = float(value)
        except ValueError:
            quantile = math.nan
        if not 0 <= quantile <= 1:
            self.fail("use mean, max, a quantile from 0 to 1, or unknown", param, ctx)
        return quantile


@click.group("calibrate", cls=Group)
def command() -> None:
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
    # Matrices are small here. Where others want the cores, waiting for a second thread takes three times as long as the
    # work; OpenBLAS reads this when NumPy is first loaded, which is after this line.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@command.command("fit", cls=Verb)
@ANSWERS
@JUDGMENTS
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Output folder of the calibrator.")
@click.option("--main", metavar="QUESTION", help="Id of the question to predict; default: Q0 or overall.")
@click.option("--nominal", multiple=True, metavar="QUESTION", help="Question whose options have no order. Repeatable.")
@click.option(
    "--options",
    multiple=True,
    type=QuestionOptions(),
    metavar="QUESTION=1,2,3",
    help="All options of a question. Repeatable.",
)
@click.option(
    "--shift", metavar="COLUMN", help="Choose the model for new groups of this column, by leaving groups out."
)
@click.option(
    "--model", default="best", show_default=True, help="Name of a model, or `best` to choose by cross-validation."
)
@click.option("--network", is_flag=True, help="Also try the calibration network (slower).")
@click.option("--main-only", is_flag=True, help="Fit nothing for annotators' other questions (faster).")
@SEED
@set_option(*NETWORK)
@AS_JSON
def fit(answers: str, judgments: str, as_json: bool, options: tuple[tuple[str, Any], ...], **given: Any) -> int:
    """Fit a calibrator, and keep it as JSON with its arrays beside it.

    Which model predicts is chosen by cross-validation, and told. With --model network it is the calibration network,
    whose settings are searched for at random, for a minute at most on some hundred texts; with --set they are as given.
    Every question that annotators answered gets a calibrator of its own, for `predict --question`.

    \b
    Examples
      pollex calibrate fit answers.csv judgments.csv --out calibrator
      pollex calibrate fit answers.parquet judgments.parquet --out calibrator --main overall --nominal length
      pollex calibrate fit answers.csv thumbs.csv --out calibrator --main thumb
      pollex calibrate fit synthetic-llm.tsv synthetic-human.tsv --out calibrator --shift system
      pollex calibrate fit answers.csv judgments.csv --out calibrator --network
      pollex calibrate fit answers.csv judgments.csv --out calibrator --model network
      pollex calibrate fit answers.csv judgments.csv --out calibrator --model network --set recipe=authors
    """
    from pollex.cli.calibration_output import show_fitted  # NumPy is not needed for --help; likewise below
    from pollex.services.calibrate import calibrate

    report = shlex.join(["pollex", "calibrate", "report", str(given["out"]), answers, judgments])
    use_case = partial(calibrate, answers, judgments, options=dict(options), settings=settings_of("network"), **given)
    return cli.run(use_case, partial(show_fitted, next_command=report), as_json=as_json)


@command.command("predict")
@FOLDER
@ANSWERS
@out_option("predictions.parquet", "Output file: .parquet, .jsonl or .csv.")
@click.option(
    "--question",
    "questions",
    multiple=True,
    metavar="QUESTION",
    help="Predict this question, or all; default: the main one. Repeatable.",
)
@click.option(
    "--pre-trained", is_flag=True, help="Predict other questions by the network before it was tuned to the main one."
)
@click.option(
    "--judge", "judges", multiple=True, metavar="NAME", help="Trust this annotator; default: all. Repeatable."
)
@click.option(
    "--aggregate",
    type=HowToAggregate(),
    default="mean",
    show_default=True,
    metavar="HOW",
    help="How trusted annotators become one: mean, max, a quantile such as 0.1; or unknown: somebody else.",
)
@AS_JSON
def predict(folder: Path, answers: str, as_json: bool, **given: Any) -> int:
    """Predict what people would say of texts, a row for each text and question.

    A row has text_id, question, the expected answer and its variance (empty where answers have no order), the entropy
    in nats, and a probability for each answer (p_1, p_2 …): the mean over the annotators that the calibrator was fitted
    to, or over those named with --judge, who also get a list `judges` with the same for each. With --aggregate max or a
    quantile, the expected answer is that of theirs. Every question has a calibrator of its own, tuned to it.

    \b
    Examples
      pollex calibrate predict calibrator new-answers.csv --out predictions.parquet
      pollex calibrate predict calibrator new-answers.csv --out predictions.jsonl --judge ann --judge bob
      pollex calibrate predict calibrator new-answers.csv --out lowest.csv --aggregate 0.1
      pollex calibrate predict calibrator new-answers.csv --out every.parquet --question all
    """
    from pollex.cli.calibration_output import show_predicted
    from pollex.services.calibrate import predict_judgments

    return cli.run(partial(predict_judgments, folder, answers, **given), show_predicted, as_json=as_json)


@command.command("report")
@FOLDER
@ANSWERS
@JUDGMENTS
@out_option("calibration.html", "The page to write.")
@click.option(
    "--texts", multiple=True, metavar="LOG", help="Log of the texts: the page shows those predicted lowest. Repeatable."
)
@click.option("--quick", is_flag=True, help="Use fewer resamples: faster, with less exact intervals.")
@SEED
@AS_JSON
def report(folder: Path, answers: str, judgments: str, as_json: bool, **given: Any) -> int:
    """Measure a calibrator beside simpler models, and write a page about it.

    All models are cross-fitted on these tables: no text is predicted by a model that saw it. The page holds the
    comparison with 95 % intervals, how predicted answers to each question are spread over the texts of each subset,
    reliability diagrams, a curve for each judge, what each question gains, a learning curve, and the leverage of each
    question. It needs nothing but itself.

    \b
    Examples
      pollex calibrate report calibrator answers.csv judgments.csv --out calibration.html
      pollex calibrate report calibrator answers.csv judgments.csv --texts log.jsonl --out calibration.html
      pollex calibrate report calibrator answers.csv judgments.csv --json | tail -n 1 | jq .figures.log_loss
    """
    from pollex.cli.calibration_output import show_report
    from pollex.services.calibration_report import report_calibrator

    return cli.run(partial(report_calibrator, folder, answers, judgments, **given), show_report, as_json=as_json)
