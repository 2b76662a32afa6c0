"""Find what to change in the assistant's prompt, and prove whether it helps.

A rubric tells what costs thumbs. A remedy is a change of the assistant's prompt that mends it, asked on conversations
that took no part in finding it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pollex.errors import WrongUse
from pollex.store.folder import STORE, VARIABLE
from pollex.usecases.families import ByJudge, Grouped, logs_argument, path_of, rubrics_option, set_of
from pollex.usecases.use_case import Crew, UseCase, opt, options, use_case

if TYPE_CHECKING:
    from pollex.services.logs import Data
    from pollex.services.plan import CallPlan
    from pollex.services.remedy.brief import BriefResult
    from pollex.services.remedy.cases import CasesResult
    from pollex.services.remedy.result import RemedyResult
    from pollex.usecases.families import Rubrics

GATE_FAILED = 4


@options
class OnReplies(Grouped):
    """What fails in the replies of a log."""

    logs: tuple[str, ...] | Data = logs_argument()
    rubrics: Path | Rubrics = rubrics_option(kw_only=False)
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


@use_case("remedy run")
class ProveRemedy(Grouped, ByJudge, UseCase["RemedyResult"]):
    """Prove your own change of the prompt: both prompts are asked now, on conversations that took no part in it.

    Each logged conversation is taken up to a reply that failed, and the assistant is asked for that reply again, under
    the old and under the new prompt. What a judge finds is "judged better"; better is what people or thumbs tell.
    Replies that are missing are never a score. Exit code 4: worse, or not cleared.

    \b
    Examples
      pollex remedy run logs.jsonl --rubrics rubrics.json --prompt system.md --target 4808 --edit my.diff
             --profiles profiles.toml --out remedy.json
      pollex remedy run … --assistant shop:answer        a function (messages, system) of shop.py, or a graph
      pollex remedy run … --assistant asked              todo.jsonl and replies.jsonl in the folder asked
      pollex remedy run … --dry-run                      calls, cost, and the smallest effect that it can find
    """

    logs: tuple[str, ...] | Data = logs_argument()
    rubrics: Path | Rubrics = rubrics_option(kw_only=False)
    prompt: Path | str = opt("The assistant's system prompt, or its template.", metavar="FILE")
    target: str = opt("Id of the rubric to aim at, or its beginning.", metavar="ID")
    edit: Path | str = opt("The change: a diff (.diff, .patch), or the changed prompt.", metavar="FILE")
    profiles: Path | str | None = opt("File with a table [assistant]: model and more.", default=None, metavar="FILE")
    assistant: str | Any | None = opt(
        "MODULE:FUNCTION or graph of yours, or a folder of files.", default=None, metavar="NAME"
    )
    out: Path | str | None = opt("Where the result is written (.json).", default=None, typed=Path("remedy.json"))
    keep: tuple[str, ...] = opt("Pattern of lines that no edit may change; repeatable.", default=(), metavar="REGEX")
    any_prompt: bool = opt("Take conversations under another system prompt, too.", default=False)
    margin: float = opt("Drop of a guardrail that is to be ruled out; 0.1 if not set.", default=0.1, place="setting")
    seed: int = opt("Random seed of the contexts and replies; 0 if not set.", default=0, place="setting")

    def _asked(self) -> tuple[Any, ...]:
        from pollex.services.remedy.assistants import named_assistant, of_profiles
        from pollex.services.remedy.sample import RemedyOptions

        if (self.profiles is None) == (self.assistant is None):
            raise WrongUse(
                "name the assistant once", remedy="by a file of profiles, or by what answers", option="assistant"
            )
        asked = named_assistant(self.assistant) if self.profiles is None else of_profiles(Path(self.profiles))
        about = RemedyOptions(
            prompt=Path(self.prompt),
            target=self.target,
            edit=Path(self.edit),
            keep=self.keep,
            any_prompt=self.any_prompt,
            margin=self.margin,
            seed=self.seed,
        )
        return self.read(self.logs), set_of(self.rubrics), about, asked

    def carry_out(self, crew: Crew) -> RemedyResult:
        """See `services.remedy.run.remedy`."""
        from pollex.services.remedy.run import remedy

        return remedy(*self._asked(), out=path_of(self.out), **self.common(crew))

    def plan(self, crew: Crew) -> CallPlan:
        """See `services.remedy.run.plan_remedy`."""
        from pollex.services.remedy.run import plan_remedy

        return plan_remedy(*self._asked(), **self.common(crew))

    def exit_code(self, result: Any) -> int:
        """Return 4 for a change that is worse, or not cleared."""
        return GATE_FAILED if getattr(result, "verdict", "") in ("worse", "not cleared") else 0
