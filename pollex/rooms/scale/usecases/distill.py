"""A model's rubrics, answered without the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pollex.errors import WrongUse
from pollex.usecases.families import (
    RUBRICS_HELP,
    AnnotatorOptions,
    GroupOptions,
    JudgedLogOptions,
    declare_output_option,
)
from pollex.usecases.use_case import CallContext, UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.rooms.scale.services.distill import DistillResult
    from pollex.services.dry_run import CallPlan
    from pollex.services.logs import Data
    from pollex.usecases.families import Rubrics


@use_case("distill")
class DistillSet(AnnotatorOptions, GroupOptions, JudgedLogOptions, UseCase["DistillResult"]):
    """Teach a built-in judge to answer a set's rubrics from the model's answers that the store has.

    LOGS have the conversations that were judged, with their thumbs. Each rubric is learned from
    words, signals and events, and told how well its answers are foretold for conversations that it
    was not learned from. The new set scores without a call; `pollex score --set cascade=RUBRICS`
    asks the model where a label is in doubt.

    \b
    Examples
      pollex distill logs.jsonl --rubrics rubrics.json --out distilled.json
      pollex score new.jsonl --rubrics distilled.json --out scores.parquet
      pollex score new.jsonl --rubrics distilled.json --set cascade=rubrics.json --out scores.parquet
    """

    does = "distill.distill_rubric_set"
    help_title = "Improve"
    logs: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )
    rubrics: Path | Rubrics = opt(RUBRICS_HELP, kw_only=False, group="Rubrics")
    out: Path | str | None = declare_output_option(typed="distilled.json")
    hard: Literal["drop", "model"] = opt(
        "Rubrics that can't be answered without the model: they go, or the model goes on.",
        default="drop",
    )
    least: float = opt(
        "Correlation with the model's answers that a rubric needs.",
        default=0.3,
    )

    def plan(self, context: CallContext) -> CallPlan:
        """Refuse: nothing is asked."""
        raise WrongUse(
            "answers that were paid for are all that is used",
            hint="leave it out",
            option="dry_run",
        )
