"""What the options of `pollex judge` ask for: a question, its answers, and the rule by which a rating stands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pollex.agents.llm.reading import as_read
from pollex.agents.verdicts import Rule
from pollex.errors import UNREADABLE, BadInput, WrongUse
from pollex.graphs.judging import Task, asked


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """What the command line's options of the same names say.

    Attributes:
        runs: n of the ensemble.
        named: The run to go on with; `last` for the last one, None for a new one.
    """

    question: str | None
    options: str
    runs: int
    minimum: int | None
    panel: tuple[str, ...]
    variant: Literal["v0", "v1", "v2", "v3", "v4"]
    domain: Path | None
    instructions: Path | None
    tau: float | None
    tau_agree: bool
    tau_precision: float | None
    stop_early: bool
    seed: int
    out: Path
    accepted: Path | None
    for_humans: Path | None
    answers: Path | None
    ask: bool
    named: str | None = None

    @property
    def texts(self) -> list[str]:
        """The answers that may be given."""
        found = [option.strip() for option in self.options.split(",") if option.strip()]
        # As answers are read: two options that are alike there would be one, and the second's votes the first's.
        read = {as_read(option).casefold() for option in found}
        if len(found) < 2 or len(read) < len(found):
            remedy = "give at least two different ones: --options yes,no"
            raise WrongUse(f"{self.options!r} are no answers to choose from", remedy=remedy)
        return found

    def task(self, model: str | None) -> Task:
        """The question and the rule."""
        if self.question is None or not self.question.strip():
            raise WrongUse("no question", remedy='give one: --question "Was the task completed?"')
        if (self.tau is not None) + self.tau_agree + (self.tau_precision is not None) > 1:
            raise WrongUse("several rules for τ", remedy="give one of --tau, --tau-agree and --tau-precision")
        if self.tau_precision is not None and self.stop_early:
            raise WrongUse("τ can't be fitted to runs that were never asked", remedy="leave out --stop-early")
        rule = Rule.of(self.runs, minimum=self.minimum, tau=self.tau)
        if self.tau_precision is not None:
            rule = replace(rule, tau=None)
        by = "embedded" if model is None else f"{', '.join([model, *self.panel])}, prompt {self.variant}"
        return Task(asked(self.question, self.texts), rule, self.tau_precision, by)

    def told(self) -> str:
        """What human raters are told; empty where no file says it."""
        if self.instructions is None:
            return ""
        try:
            return self.instructions.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            what = f"the instructions can't be read: {error}"
            raise BadInput(what, where=str(self.instructions), remedy=UNREADABLE) from error
