"""Find what to change in the assistant's prompt, and prove whether it helps.

A rubric tells what costs thumbs. A remedy is a change of the assistant's prompt that mends it,
asked on conversations that took no part in finding it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pollex.usecases.families import (
    RUBRICS_HELP,
    GroupOptions,
    JudgedLogOptions,
    Reading,
    StoreOptions,
)
from pollex.usecases.use_case import CallContext, UseCase, declare_options, opt, use_case

if TYPE_CHECKING:
    from pollex.rooms.remedy.services.assistants import AssistantOptions
    from pollex.rooms.remedy.services.brief import BriefResult
    from pollex.rooms.remedy.services.cases import CasesResult
    from pollex.rooms.remedy.services.follow import FollowResult
    from pollex.rooms.remedy.services.result import RemedyResult
    from pollex.services.logs import Data
    from pollex.usecases.families import Rubrics

GATE_FAILED_EXIT_CODE = 4
GATE_FAILING_VERDICTS = (
    "worse",
    "no gain, likely harm",
    "not cleared",
    "only people can tell",
    "people prefer the old one",
)


@declare_options
class RepliesUseCase(GroupOptions, Reading, StoreOptions):
    """What fails in the replies of a log."""

    logs: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )
    rubrics: Path | Rubrics = opt(RUBRICS_HELP, kw_only=False, group="Rubrics")
    prompt: Path | str | None = opt(
        "The assistant's system prompt, or its template.",
        default=None,
        metavar="FILE",
    )
    target: str | None = opt(
        "The one rubric to aim at; all headlines if not set.",
        default=None,
        metavar="ID",
    )


@use_case("remedy brief")
class WriteBrief(RepliesUseCase, UseCase["BriefResult"]):
    """Tell what to change where: what fails in replies, how often, and what the prompt says of it. No model is asked.

    \b
    Example
      pollex remedy brief logs.jsonl --rubrics rubrics.json --prompt system.md --out brief.md
    """

    does = "brief.write_brief"
    help_title = "Improve"
    out: Path | str | None = opt(
        "Where it is written.",
        default=None,
        typed=Path("brief.md"),
        group="Output",
    )

    def recognizes(self, path: Path) -> bool:
        """Tell a brief by its heading: it is written without a store, which would know of it."""
        from pollex.rooms.remedy.services.brief import HEADING  # --help needs no service

        with path.open("rb") as file:
            return file.read(len(HEADING)) == HEADING.encode()


@use_case("remedy cases")
class WriteCases(RepliesUseCase, UseCase["CasesResult"]):
    """Write regression cases for a test tool: replies that failed or went well, asked for again. No model is asked.

    \b
    Example
      pollex remedy cases logs.jsonl --rubrics rubrics.json --to promptfoo --out cases
    """

    does = "cases.write_cases"
    to: Literal["promptfoo", "inspect", "langsmith", "mlflow", "jsonl"] = opt("The tool.")
    out: Path | str = opt("Output folder.", default=Path("cases"), group="Output")
    every: bool = opt(
        "Also write the cases that a proof is left for.",
        default=False,
        flag="all",
    )


@use_case("remedy run")
class ProveRemedy(GroupOptions, JudgedLogOptions, UseCase["RemedyResult"]):
    """Prove a change of the prompt, yours or a model's: both prompts are asked now, on users who took no part in it.

    Without --edit the [proposer] of the profiles proposes changes, once replies still fail and a
    prompt can mend that; the run waits until a person accepts some (--accept). Each logged
    conversation is taken up to a reply that failed, and the assistant is asked for that reply
    again, under the old and under the new prompt. What a judge finds is "judged better"; better is
    what people or thumbs tell. Missing replies are never a score. Exit code 4: worse, likely harm,
    not cleared, or for people to tell.

    \b
    Examples
      pollex remedy run logs.jsonl --rubrics rubrics.json --prompt system.md --target 4808 --edit my.diff
             --profiles profiles.toml --out remedy.json
      pollex remedy run … --assistant shop:answer        a function (messages, system) of shop.py, or a graph
      pollex remedy run … --assistant asked              todo.jsonl and replies.jsonl in the folder asked
      pollex remedy run … --dry-run                      calls, cost, and the smallest effect that it can find
    """

    does = "run.prove_remedy"
    plans = True
    resumable = True
    goes_on_in_browser = True
    bundle = "services.sample.RemedyOptions"
    logs: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )
    rubrics: Path | Rubrics = opt(RUBRICS_HELP, kw_only=False, group="Rubrics")
    prompt: tuple[str, ...] | Path | str = opt(
        "The assistant's system prompt, or its template; of several each as NAME=FILE.",
        many=True,
        metavar="FILE",
    )
    target: str = opt("Id of the rubric to aim at, or its beginning.", metavar="ID")
    edit: tuple[str, ...] | Path | str = opt(
        "A change: a diff, or the changed prompt; repeatable; of one of several prompts as NAME=FILE.",
        default=(),
        many=True,
        metavar="FILE",
    )
    accept: str | None = opt(
        "Proposals to try: all, or their names between commas.",
        default=None,
        metavar="NAMES",
    )
    people: int = opt(
        "Pairs that people compare; none if not set.",
        default=0,
        place="setting",
        least=0,
    )
    profiles: Path | str | None = opt(
        "File with tables [assistant], [proposer], [second]: model and more.",
        default=None,
        metavar="FILE",
    )
    assistant: str | Any | None = opt(
        "MODULE:FUNCTION or graph of yours, or a folder of files.",
        default=None,
        metavar="NAME",
    )
    render: object = opt(
        "Fills the prompt's template for a conversation; None: left out.",
        default=None,
        door="python",
    )
    tools: Any = opt(
        "Functions by the names of tools whose calls the log lacks.",
        default=None,
        door="python",
    )
    out: Path | str | None = opt(
        "Where the result is written (.json).",
        default=None,
        typed=Path("remedy.json"),
    )
    keep: tuple[str, ...] = opt(
        "Pattern of lines that no edit may change; repeatable.",
        default=(),
        metavar="REGEX",
    )
    any_prompt: bool = opt(
        "Take conversations under another system prompt, too.",
        default=False,
        place="rare",
    )
    live_tools: Literal["no", "yes", "personal"] = opt(
        "Whether tools that a graph carries out itself may act: no, yes, or personal, on personal data, too.",
        default="no",
        place="setting",
    )
    reply_seconds: float = opt(
        "Seconds that a reply of a function or graph may take; 120 if not set.",
        default=120.0,
        place="setting",
        least=0.1,
    )
    margin: float = opt(
        "Drop of a guardrail that is to be ruled out; 0.1 if not set.",
        default=0.1,
        place="setting",
        least=0.01,
        most=0.5,
    )
    candidates: int | None = opt(
        "Proposals; 6 if not set, 1 where there is little to choose by.",
        default=None,
        place="setting",
        least=1,
        most=16,
    )
    finalists: int = opt(
        "Proposals that are proven; 1 if not set.",
        default=1,
        place="setting",
        least=1,
        most=4,
    )
    back: int = opt(
        "Replies before the failure that are asked again; 0 if not set.",
        default=0,
        place="setting",
        least=0,
        most=100,
    )
    replies: int | None = opt(
        "Replies of each prompt to a context; 2 if not set, 3 to see whether it still fails, 1 to choose.",
        default=None,
        place="setting",
        least=1,
    )
    tried: int = opt(
        "Contexts of a kind before a proof; 60 if not set.",
        default=60,
        place="setting",
        least=20,
    )
    others: int = opt(
        "Contexts of a proof where the target didn't fail; 100 if not set.",
        default=100,
        place="setting",
        least=2,
    )
    seed: int = opt(
        "Random seed of the contexts and replies; 0 if not set.",
        default=0,
        place="setting",
    )

    def as_assistant(self, context: CallContext) -> AssistantOptions:
        """Return who is asked."""
        from pollex.rooms.remedy.services.assistants import parse_assistant

        options = parse_assistant(
            self.assistant,
            self.profiles,
            self.as_model(context),
            self.reply_seconds,
            live_tools=self.live_tools != "no",
        )
        return replace(options, tools=self.tools or {})

    def exit_code(self, result: Any) -> int | None:
        """Return 4 where a change is worse, not cleared, or for people to tell."""
        failed = []
        for edit in getattr(result, "edits", ()):
            if edit.verdict in GATE_FAILING_VERDICTS:
                failed.append(edit)

        return GATE_FAILED_EXIT_CODE if failed else None


@use_case("remedy show")
class ShowRemedy(StoreOptions, UseCase["RemedyResult"]):
    """Show what a run of `remedy run` came to.

    \b
    Example
      pollex remedy show last
    """

    does = "follow.show_remedy"
    name: str = opt(kw_only=False, place="argument", metavar="RUN")


@use_case("remedy follow")
class FollowRemedy(GroupOptions, JudgedLogOptions, UseCase["FollowResult"]):
    """Tell after a deployment what a remedy promised, and what came of it, on conversations under both prompts.

    \b
    Example
      pollex remedy follow remedy-3 new.jsonl --rubrics rubrics.json --by prompt_version --baseline old
    """

    does = "follow.follow_remedy"
    name: str = opt(kw_only=False, place="argument", metavar="RUN")
    logs: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )
    rubrics: Path | Rubrics = opt(RUBRICS_HELP, group="Rubrics")
    by: str = opt(
        "Field that tells the prompt of each conversation.",
        metavar="FIELD",
    )
    baseline: str = opt("Its value for the old prompt.", metavar="VALUE")


@use_case("remedy plan")
class PlanRemedy(ProveRemedy):
    """Count the calls of `remedy run` before a cent is spent, and say the smallest effect that it can find.

    \b
    Example
      pollex remedy plan logs.jsonl --rubrics rubrics.json --prompt system.md --target 4808 --profiles profiles.toml
    """

    def carry_out(self, context: CallContext) -> Any:
        """See `plan`."""
        return ProveRemedy(**vars(self)).plan(context)
