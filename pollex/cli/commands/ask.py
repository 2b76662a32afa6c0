"""`pollex ask`: a questionnaire about each text, answered by a model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import LOGS, logs_argument, out_option, with_grader, with_logs, with_run
from pollex.cli.settings import CALLS, READING, set_option

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions, RunOptions


@click.command("ask", cls=Verb)
@logs_argument
@click.option(
    "--questionnaire",
    default="llm-rubric",
    show_default=True,
    metavar="NAME|FILE",
    help="Questions with their options: llm-rubric, or a TOML file.",
)
@out_option("answers.parquet", "Output file, one row for each option: .parquet, .jsonl or .csv.")
@with_logs()
@with_grader
@with_run
@set_option(*(name for name in READING if name not in LOGS), *CALLS, "require", "closing")
def command(
    logs: tuple[str, ...],
    questionnaire: str,
    out: Path,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
) -> int:
    """Ask an LLM each question of a questionnaire about each conversation, one question in a call.

    An answer is one letter, so one token: its log-probabilities are the distribution over the question's options. Where
    the endpoint gives none, --samples calls are counted, or one answer has all the probability; column `source` says
    which. `pollex calibrate fit` reads --out as it is. llm-rubric is the paper's nine questions in words of our own.

    \b
    Examples
      pollex ask logs.jsonl --model M --out answers.parquet
      pollex ask logs.jsonl --questionnaire mine.toml --model M --dry-run
      pollex calibrate fit answers.parquet judgments.csv --out calibrator
    """
    from pollex.cli.grade_output import show_asked  # agents and prompts are not needed for --help
    from pollex.cli.output import show_plan
    from pollex.services.ask import ask, plan_ask

    if run.dry_run:
        plan = partial(plan_ask, logs, questionnaire, reading=reading, run=run, model=model)
        return cli.run(plan, show_plan, as_json=run.as_json)
    use_case = partial(ask, logs, questionnaire, out=out, reading=reading, run=run, model=model)
    return cli.run(use_case, show_asked, as_json=run.as_json)
