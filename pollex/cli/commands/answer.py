"""`pollex answer`: what a model answers to questions, to be graded."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import out_option, with_logs, with_respondent, with_run
from pollex.cli.settings import CALLS, set_option

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions, RunOptions


@click.command("answer", cls=Verb)
@click.argument("questions", nargs=-1, required=True, metavar="QUESTIONS…")
@out_option("answers.jsonl", "Output file: .jsonl, .csv or .parquet.")
@click.option(
    "--profile",
    metavar="NAME|FILE",
    help="Profile with the temperatures: chinese, english, or a TOML file; default: as the questions' language is.",
)
@click.option("--system", default="", metavar="TEXT", help="System message before each question.")
@click.option(
    "--max-tokens",
    default=4096,
    show_default=True,
    help="Maximum tokens of an answer; doubled once if it is truncated.",
)
@click.option("--seed", default=0, show_default=True, help="Random seed sent with every question.")
@with_logs(usual=("id_field", "max_bad"))
@with_respondent
@with_run
@set_option("category_field", "encoding", "redact", *CALLS)
def command(
    questions: tuple[str, ...], out: Path, reading: ReadOptions, run: RunOptions, model: ModelOptions, **given: Any
) -> int:
    """Ask the system under test questions, and write its answers.

    QUESTIONS have `question`, and may have `question_id`, `category` and `subcategory`; AlignBench's file is read as it
    is. Each question is asked at the temperature of its category in the profile: low where answers are fixed, higher
    where something is to be created. A question without an answer keeps its row, with the outcome, and the exit code
    is 3. What was paid for is never asked again, in whatever run.

    \b
    Examples
      pollex answer questions.jsonl --model my-model --base-url http://localhost:8000/v1
      pollex answer questions.jsonl --model my-model --profile english --out answers.parquet
      pollex answer questions.jsonl --model my-model --dry-run --set price=1:4
      pollex answer questions.jsonl --model my-model --resume            after a kill or Ctrl-C
      pollex grade questions.jsonl --answers answers.jsonl --model judge-model
    """
    from pollex.cli.grade_output import show_answers  # agents and prompts are not needed for --help
    from pollex.cli.output import show_plan
    from pollex.services.answer import AnswerOptions, answer, plan_answer

    asked = AnswerOptions(**given)
    if run.dry_run:
        plan = partial(plan_answer, questions, asked, reading=reading, run=run, model=model)
        return cli.run(plan, show_plan, as_json=run.as_json)
    return cli.run(
        partial(answer, questions, asked, out=out, reading=reading, run=run, model=model),
        show_answers,
        as_json=run.as_json,
    )
