"""Scores to a tool's interface."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.rooms.exchange.services.transfer import TransferResult


@use_case("push")
class PushScores(UseCase["TransferResult"]):
    """Send scores that `pollex score --as TOOL` wrote to that tool.

    Sending the file again updates the scores.

    \b
    Example
      pollex score traces.jsonl --rubrics rubrics.json --as langfuse --out scores.json
      pollex push scores.json --to langfuse
    """

    does = "transfer.push_scores"
    file: Path = opt(kw_only=False, place="argument")
    to: str = opt(
        "langfuse, langsmith, phoenix, mlflow, opik or otel.",
        metavar="TOOL",
    )
    yes: bool = opt("Send without asking for confirmation.", default=False)

    @property
    def to_confirm(self) -> str:
        """What a person is asked first."""
        if self.yes:
            return ""
        if self.to != "langsmith":
            return f"Send the scores to {self.to}?"
        return "LangSmith may keep traces longer that get feedback, which can cost more. Send it?"
