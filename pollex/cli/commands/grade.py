"""`pollex grade`: answers graded against references."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import out_option, with_grader, with_logs, with_run
from pollex.cli.settings import CALLS, set_option

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions, RunOptions


@click.command("grade", cls=Verb)
@click.argument("questions", nargs=-1, required=True, metavar="QUESTIONS…")
@click.option(
    "--answers", type=click.Path(path_type=Path), help="File of answers to grade; default: field `answer` of QUESTIONS."
)
@click.option(
    "--profile",
    metavar="NAME|FILE",
    help="Scale, rules and dimensions: chinese, english, or a TOML file; default: as the questions' language is.",
)
@click.option("--plain", is_flag=True, help="Also grade without references, for comparison.")
@click.option("--human", multiple=True, metavar="FILE", help="People's grades, by id. Repeatable.")
@click.option("--human-field", metavar="FIELD", help="Field of people's grades.")
@out_option("grades.jsonl", "Output file, one row for each question: .jsonl, .csv or .parquet.")
@click.option("--page", type=click.Path(path_type=Path), help="Report page about the grades; default: next to --out.")
@with_logs(usual=("id_field", "max_bad"))
@with_grader
@with_run
@set_option("category_field", "encoding", "redact", *CALLS, "require", "value", "closing")
def command(
    questions: tuple[str, ...],
    out: Path,
    page: Path | None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    **given: Any,
) -> int:
    """Grade answers against references, on the dimensions of each task's type and as a whole.

    QUESTIONS have references, as AlignBench has them; a question's category tells its type. Where the profile doesn't
    know the category the model is asked, and may be unsure. A reference that is missing or contradicts its evidence
    gives no grade. There is a row a question in --out, and means and distributions on a page.

    \b
    Examples
      pollex answer questions.jsonl --model M1 --out answers.jsonl
      pollex grade questions.jsonl --answers answers.jsonl --model M2
      pollex grade graded.csv --profile english --plain --human-field rating --model M2 --out grades.csv
    """
    from pollex.cli.grade_output import show_grades  # agents and prompts are not needed for --help
    from pollex.cli.output import show_plan
    from pollex.services.grade import GradeOptions, grade, plan_grade

    asked, page = GradeOptions(**given), page or out.with_suffix(".html")
    if run.dry_run:
        plan = partial(plan_grade, questions, asked, reading=reading, run=run, model=model)
        return cli.run(plan, show_plan, as_json=run.as_json)
    use_case = partial(grade, questions, asked, out=out, page=page, reading=reading, run=run, model=model)
    return cli.run(use_case, show_grades, as_json=run.as_json)
