"""One question about each conversation, answered in several independent runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pollex.usecases.families import (
    LabelSourceOptions,
    RaterModelOptions,
    Reading,
    declare_output_option,
    split_words,
)
from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pollex.prompts.domain import DomainProfile
    from pollex.rooms.judge.services.verdicts import JudgeResult
    from pollex.services.logs import Data


def declare_question_option(help_text: str, default: object = None, **more: Any) -> Any:
    """Declare how the question is asked."""
    return opt(help_text, default=default, group="Question", **more)


@use_case("judge")
class JudgeLogs(LabelSourceOptions, Reading, RaterModelOptions, UseCase["JudgeResult"]):
    """Rate conversations with one question, asked in several independent runs.

    Where the runs agree the conversation gets their rating, and goes to --accepted. Where they
    don't its rating is
    empty: `pollex review` hands such conversations out to people, and takes their answers up. A
        failed run is never a
    vote.

    \b
    Examples
      pollex judge logs.jsonl --question "Was the task completed?" --model MODEL --accepted good.jsonl
      pollex judge logs.jsonl --question "Did the user give up?" --options no,yes --tau-precision 0.9
      pollex judge logs.jsonl --question "Was the task completed?" --model M1 --panel M2 --stop-early --dry-run
      pollex judge logs.jsonl --question "Was the task completed?" --model M --votes votes.parquet --set variant=v2
      pollex judge logs.jsonl --question "How polite is it?" --options rude,plain,kind --model M
      pollex review last --out people.jsonl
    """

    does = "judge.judge_logs"
    resumable = True
    goes_on_in_browser = True
    plans = True
    bundle = "services.judge.JudgeOptions"
    shown_with = ("store",)
    logs: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )
    question: str = opt(
        "Question about every conversation.",
        kw_only=False,
        metavar="TEXT",
        group="Question",
    )
    options: tuple[str, ...] | Sequence[str] = declare_question_option(
        "Possible answers; the first one is positive.",
        ("yes", "no"),
        typed="yes,no",
        metavar="A,B,…",
        parse=split_words,
    )
    runs: int = declare_question_option(
        "Independent runs for each conversation.",
        7,
        flag="ensemble",
        metavar="N",
    )
    panel: tuple[str, ...] | Sequence[str] = declare_question_option(
        "Another model of the endpoint, used in turn. Repeatable.",
        (),
        metavar="MODEL",
    )
    tau: float | None = declare_question_option(
        "Maximum diversity entropy of accepted ratings; default: one run may differ.",
        metavar="NATS",
    )
    tau_precision: float | None = declare_question_option(
        "Fit τ to this precision on the thumbs in LOGS.",
        metavar="P",
    )
    stop_early: bool = declare_question_option(
        "Ask no more runs once the verdict can no longer change.", False
    )
    out: Path | str | None = declare_output_option(
        "Output file of verdicts: .jsonl, .csv or .parquet.",
        typed="verdicts.jsonl",
    )
    accepted: Path | str | None = declare_output_option(
        "Output file of conversations with a rating, for fine-tuning."
    )
    votes: Path | str | None = declare_output_option("Output file of each run's answer.")
    minimum: int | None = declare_question_option(
        "Minimum number of answered runs; more than half if not set.",
        place="setting",
    )
    variant: Literal["v0", "v1", "v2", "v3", "v4"] | None = declare_question_option(
        "Prompt: v0 question only, v1 instructions, v2 grounded, v3 expected end state, v4 actual end state (default).",
        place="setting",
    )
    domain: Path | str | DomainProfile | None = declare_question_option(
        "Domain profile (TOML).",
        place="setting",
    )
    instructions: Path | str | None = declare_question_option(
        "File with the instructions for human annotators.",
        place="setting",
    )
    seed: int | None = declare_question_option(
        "Random seed; each run gets another one.",
        place="setting",
    )
    category_field: str | None = opt(
        "Field of the task's category; `category` if not set.",
        default=None,
        group="Data",
        place="setting",
    )
