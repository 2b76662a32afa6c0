"""A questionnaire about each text, answered by a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pollex.usecases.families import (
    GraderModelOptions,
    LabelSourceOptions,
    Reading,
    declare_output_option,
)
from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.prompts.domain import DomainProfile
    from pollex.rooms.questionnaire.services.ask import AskResult
    from pollex.services.logs import Data


@use_case("ask")
class AskQuestionnaire(LabelSourceOptions, Reading, GraderModelOptions, UseCase["AskResult"]):
    """Ask an LLM each question of a questionnaire about each conversation, one question in a call.

    An answer is one letter, so one token: its log-probabilities are the distribution over the
    question's options. Where the endpoint gives none, --samples calls are counted, or one answer
    has all the probability; column `source` says which. Questions about sources are asked where a
    conversation has some; elsewhere they don't apply, at no cost. `pollex calibrate fit` reads
    --out as it is. llm-rubric is the paper's nine questions in words of our own.

    \b
    Examples
      pollex ask logs.jsonl --model M --out answers.parquet
      pollex ask logs.jsonl --questionnaire mine.toml --model M --dry-run
      pollex calibrate fit answers.parquet judgments.csv --out calibrator
    """

    does = "ask.ask_questionnaire"
    resumable = True
    goes_on_in_browser = True
    plans = True
    labels_needed = False
    logs: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )
    questionnaire: str | Path = opt(
        "Questions with their options: llm-rubric, or a TOML file.",
        default="llm-rubric",
        kw_only=False,
        metavar="NAME|FILE",
    )
    domain: Path | str | DomainProfile | None = opt(
        "Domain profile (TOML): the model is told the task and what is expected.",
        default=None,
        group="Data",
    )
    out: Path | str | None = declare_output_option(
        "Output file, one row for each option: .parquet, .jsonl or .csv.",
        typed="answers.parquet",
    )
    category_field: str | None = opt(
        "Field of the task's category; `category` if not set.",
        default=None,
        group="Data",
        place="setting",
    )
