"""Conversations without agreement, handed out to people, whose answers are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pollex.usecases.families import StoreOptions, declare_output_option
from pollex.usecases.use_case import CallContext, UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.rooms.judge.services.judge_runs import AskPeople
    from pollex.rooms.judge.services.verdicts import JudgeResult


@use_case("review")
class ReviewRun(StoreOptions, UseCase["JudgeResult"]):
    """Let people decide conversations on which the runs of `pollex judge` disagree.

    RUN is a run's id, as `pollex runs` lists it; the last run of `judge` when left out. --out
    writes a line for each conversation without a rating, the most contested first: write an option
    into the field `answer` of its lines, and hand the file back with --answers. No model is asked
    again.

    \b
    Examples
      pollex review last --out people.jsonl
      pollex review last --answers people.jsonl --verdicts verdicts.jsonl --accepted good.jsonl
      pollex review judge-1 --ask
    """

    does = "judge.review_run"
    shown_with = ("store",)
    run: str = opt(
        default="last",
        kw_only=False,
        place="argument",
        metavar="[RUN]",
    )
    people: AskPeople | Mapping[str, str] | None = opt(
        "By conversation, the option that a person chose; or a function that returns that for questions.",
        default=None,
        kw_only=False,
        door="python",
    )
    out: Path | str | None = declare_output_option(
        "Write the conversations to decide, as JSON lines.",
        metavar="FILE",
    )
    answers: Path | str | None = declare_output_option(
        "Read that file, with answers in its field `answer`.",
        metavar="FILE",
    )
    ask: bool = opt(
        "Ask on this terminal.",
        default=False,
        group="Output",
        door="terminal",
    )
    verdicts: Path | str | None = declare_output_option(
        "Write all verdicts: .jsonl, .csv or .parquet.",
        metavar="FILE",
    )
    accepted: Path | str | None = declare_output_option(
        "Write conversations with a rating, for fine-tuning.",
        metavar="FILE",
    )

    def as_named(self, context: CallContext) -> str:
        """Return the run."""
        return self.run

    def as_interview(self, context: CallContext) -> Any:
        """Return how people are asked; None if nobody is."""
        people = self.people
        if self.ask:
            return context.interview
        if people is None or callable(people):
            return None if people is None else lambda _find: people

        once = iter([people])  # what is no option would be given for ever
        return lambda _find: lambda _question: next(once, {})
