"""`pollex answer`: what a model answers to questions, to be graded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollex.cli.options import out_option, with_endpoint, with_questions, with_run
from pollex.services.options import RunOptions

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions


@click.command("answer")
@click.argument("questions", nargs=-1, required=True, metavar="QUESTIONS…")
@out_option("answers.jsonl", "Ends in .jsonl, .csv or .parquet.")
@click.option(
    "--profile",
    default="chinese",
    show_default=True,
    metavar="NAME|FILE",
    help="Whose temperatures count: chinese, english, or a TOML file.",
)
@click.option("--system", default="", metavar="TEXT", help="What the model is told before each question.")
@click.option("--max-tokens", default=4096, show_default=True, help="Of an answer; twice as many where it was cut.")
@click.option("--seed", default=0, show_default=True, help="Sent with every question.")
@with_questions
@with_endpoint
@with_run
def command(
    questions: tuple[str, ...], out: Path, reading: ReadOptions, run: RunOptions, model: ModelOptions, **given: Any
) -> int:
    """Put questions to the system under test, one call a question, and write down what it answers.

    QUESTIONS have `question`, and may have `question_id`, `category` and `subcategory`; AlignBench's file is read as it
    is. Each question is asked at the temperature of its category in the profile: low where answers are fixed, higher
    where something is to be created. A question without an answer keeps its row, with the outcome, and the exit code
    is 3. What was paid for is never asked again, in whatever run.

    \b
    Examples
      pollex answer questions.jsonl --model my-model --base-url http://localhost:8000/v1
      pollex answer questions.jsonl --model my-model --profile english --out answers.parquet
      pollex answer questions.jsonl --model my-model --dry-run --price-in 1 --price-out 4
      pollex answer questions.jsonl --model my-model --resume            after a kill or Ctrl-C
      pollex judge questions.jsonl --reference --answers answers.jsonl --model judge-model
    """
    from pollex.services.grade import answer_command
    from pollex.services.options import AnswerOptions  # what asks is not needed for --help

    return answer_command(questions, out, reading, run, model, AnswerOptions(**given))
