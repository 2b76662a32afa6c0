"""What a model answers to questions, to be graded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pollex.usecases.families import QuestionFileOptions, TestedModelOptions, declare_output_option
from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.rooms.grade.services.answer import AnswerResult
    from pollex.services.logs import Sources


@use_case("answer")
class AnswerQuestions(QuestionFileOptions, TestedModelOptions, UseCase["AnswerResult"]):
    """Ask the system under test questions, and write its answers.

    QUESTIONS have `question`, and may have `question_id`, `category` and `subcategory`;
    AlignBench's file is read as it is. Each question is asked at the temperature of its category in
    the profile: low where answers are fixed, higher where something is to be created. A question
    without an answer keeps its row, with the outcome, and the exit code is 3. What was paid for is
    never asked again, in whatever run.

    \b
    Examples
      pollex answer questions.jsonl --model my-model --base-url http://localhost:8000/v1
      pollex answer questions.jsonl --model my-model --profile english --out answers.parquet
      pollex answer questions.jsonl --model my-model --dry-run --set price=1:4
      pollex answer questions.jsonl --model my-model --resume            after a kill or Ctrl-C
      pollex grade questions.jsonl --answers answers.jsonl --model judge-model
    """

    does = "answer.answer_questions"
    resumable = True
    goes_on_in_browser = True
    plans = True
    questions: tuple[str, ...] | Sources = opt(
        kw_only=False,
        place="argument",
        metavar="QUESTIONS…",
    )
    out: Path | str | None = declare_output_option(
        "Output file: .jsonl, .csv or .parquet.",
        typed="answers.jsonl",
    )
    profile: str | None = opt(
        "Profile with the temperatures: chinese, english, or a TOML file; default: as the questions' language is.",
        default=None,
        metavar="NAME|FILE",
        group="Question",
    )
    system: str = opt(
        "System message before each question.",
        default="",
        metavar="TEXT",
        group="Question",
    )
    max_tokens: int = opt(
        "Maximum tokens of an answer; doubled once if it is truncated.",
        default=4096,
        group="Question",
        place="rare",
    )
    seed: int = opt(
        "Random seed sent with every question.",
        default=0,
        group="Question",
        place="rare",
    )
