"""Answers graded against references."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pollex.usecases.families import (
    GraderModelOptions,
    QuestionFileOptions,
    declare_output_option,
    declare_page_option,
)
from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pollex.rooms.grade.services.grade import GradeResult
    from pollex.services.logs import Sources


@use_case("grade")
class GradeAnswers(QuestionFileOptions, GraderModelOptions, UseCase["GradeResult"]):
    """Grade answers against references, on the dimensions of each task's type and as a whole.

    QUESTIONS have references, as AlignBench has them; a question's category tells its type. Where
    the profile doesn't know the category the model is asked, and may be unsure. A reference that is
    missing or contradicts its evidence gives no grade. There is a row a question in --out, and
    means and distributions on a page.

    \b
    Examples
      pollex answer questions.jsonl --model M1 --out answers.jsonl
      pollex grade questions.jsonl --answers answers.jsonl --model M2
      pollex grade graded.csv --profile english --plain --human-field rating --model M2 --out grades.csv
    """

    does = "grade.grade_answers"
    resumable = True
    goes_on_in_browser = True
    plans = True
    questions: tuple[str, ...] | Sources = opt(
        kw_only=False,
        place="argument",
        metavar="QUESTIONS…",
    )
    answers: Path | str | None = opt(
        "File of answers to grade; default: field `answer` of QUESTIONS.",
        default=None,
        group="Data",
    )
    profile: str | None = opt(
        "Scale, rules and dimensions: chinese, english, or a TOML file; default: as the questions' language is.",
        default=None,
        metavar="NAME|FILE",
        group="Question",
    )
    plain: bool = opt(
        "Also grade without references, for comparison.",
        default=False,
        group="Question",
    )
    human: tuple[str, ...] | Sequence[str] = opt(
        "People's grades, by id. Repeatable.",
        default=(),
        metavar="FILE",
        group="Data",
    )
    human_field: str | None = opt(
        "Field of people's grades.",
        default=None,
        metavar="FIELD",
        group="Data",
    )
    out: Path | str | None = declare_output_option(
        "Output file, one row for each question: .jsonl, .csv or .parquet.",
        typed="grades.jsonl",
    )
    page: Path | str | None = declare_output_option(
        "Report page about the grades; default: next to --out."
    )

    def typed(self) -> Self:
        """Write the page next to the grades."""
        if self.page or not self.out:
            return self
        return replace(self, page=Path(self.out).with_suffix(".html"))
