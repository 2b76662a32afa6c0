"""Find what to change in the assistant's prompt, and prove whether it helps.

A rubric tells what costs thumbs. A remedy is a change of the assistant's prompt that mends it, asked on conversations
that took no part in finding it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pollex.store.folder import STORE, VARIABLE
from pollex.usecases.families import Grouped, logs_argument, path_of, rubrics_option, set_of
from pollex.usecases.use_case import Crew, UseCase, opt, options, use_case

if TYPE_CHECKING:
    from pollex.services.logs import Data
    from pollex.services.remedy.brief import BriefResult
    from pollex.services.remedy.cases import CasesResult
    from pollex.usecases.families import Rubrics


@options
class OnReplies(Grouped):
    """What fails in the replies of a log."""

    logs: tuple[str, ...] | Data = logs_argument()
    rubrics: Path | Rubrics = rubrics_option()
    prompt: Path | str | None = opt("The assistant's system prompt, or its template.", default=None, metavar="FILE")
    target: str | None = opt("The one rubric to aim at; all headlines if not set.", default=None, metavar="ID")
    store: Path | str = opt("Folder of the store.", default=Path(STORE), env=(VARIABLE,), group="Output")

    def common(self, crew: Crew) -> dict[str, Any]:
        """Return what services on replies take."""
        return {
            "logs": self.read(self.logs),
            "rubrics": set_of(self.rubrics),
            "prompt": path_of(self.prompt),
            "target": self.target,
            "reading": self.reading(),
            "run": replace(crew.run, store=Path(self.store)),
            "progress": crew.progress,
        }


@use_case("remedy brief")
class Brief(OnReplies, UseCase["BriefResult"]):
    """Tell what to change where: what fails in replies, how often, and what the prompt says of it. No model is asked.

    \b
    Example
      pollex remedy brief logs.jsonl --rubrics rubrics.json --prompt system.md --out brief.md
    """

    out: Path | str | None = opt("Where it is written.", default=None, typed=Path("brief.md"), group="Output")

    def carry_out(self, crew: Crew) -> BriefResult:
        """See `services.remedy.brief.brief`."""
        from pollex.services.remedy.brief import brief

        return brief(**self.common(crew), out=path_of(self.out))


@use_case("remedy cases")
class WriteCases(OnReplies, UseCase["CasesResult"]):
    """Write regression cases for a test tool: replies that failed or went well, asked for again. No model is asked.

    \b
    Example
      pollex remedy cases logs.jsonl --rubrics rubrics.json --to promptfoo --out cases
    """

    to: Literal["promptfoo", "inspect", "langsmith", "mlflow", "jsonl"] = opt("The tool.")
    out: Path | str = opt("Output folder.", default=Path("cases"), group="Output")
    every: bool = opt("Also write the cases that a proof is left for.", default=False, flag="all")

    def carry_out(self, crew: Crew) -> CasesResult:
        """See `services.remedy.cases.cases`."""
        from pollex.services.remedy.cases import cases

        return cases(**self.common(crew), to=self.to, out=Path(self.out), every=self.every)
