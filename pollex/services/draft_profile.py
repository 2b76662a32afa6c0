"""A domain profile that a model drafts from a log, for people to correct before it is used."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pollex.agents.llm.asker import PromptAsker
from pollex.agents.llm.profile_drafter import draft_profile, make_conversation_items
from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import BadInput, ModelUnavailable, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.write import require_writable_output_path
from pollex.graphs.context import Progress
from pollex.outputs import write_text
from pollex.prompts.domain import DomainProfile
from pollex.runs.by_model import require_model_name, run_work_by_model
from pollex.runs.options import ModelOptions, RunOptions
from pollex.runs.run import RunSettings, compute_json_digest
from pollex.runs.usage import ModelUsage
from pollex.runs.workspace import open_workspace
from pollex.services.dry_run import plan_dry_run
from pollex.services.label_queue import draw_conversations
from pollex.services.logs import Sources, list_source_names, logs_from
from pollex.services.results import Result
from pollex.text import TerminalLines, format_count

COMMAND = "domain"
"""Command of the run that keeps the call."""
SEED = 0
MOST_CONVERSATIONS = 12
"""Conversations that the model is shown: enough to see what most are about, and one cheap call."""


@dataclass(frozen=True)
class ProfileDraft(Result):
    """A domain profile that a model drafted.

    Attributes:
        conversations: How many the model was shown, drawn at random.
        population: How many there are.
        out: The file that it was written to; None for none.
    """

    profile: DomainProfile
    model: str
    conversations: int
    population: int
    usage: ModelUsage | None
    out: Path | None

    def told(self, **_asked: object) -> TerminalLines:
        """Yield the profile, and what to do with it."""
        yield f"{self.model} drafted this from {self.conversations} of {format_count(self.population, 'conversation')}:"
        yield ""
        yield from self.profile.toml().splitlines()
        if self.usage is not None:
            yield self.usage.summary

        if self.out is not None:
            path = shlex.quote(str(self.out))
            yield f"Wrote {self.out}. It is a draft: correct it, then use it: pollex learn LOGS --domain {path}"

    def as_json(self) -> dict[str, object]:
        drafted = self.profile.model_dump(mode="json")
        return {"profile": drafted} | self.of(
            "model", "conversations", "population", "out", "usage"
        )


def draft_from_log(
    logs: Sources | Logs,
    *,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
    out: Path | None = None,
) -> ProfileDraft:
    """Have a model draft a domain profile from some conversations of a log, drawn at random.

    Raises:
        BadInput: No conversation can be shown.
        ModelUnavailable: The model can't be reached, or says nothing of use.
        Planned: Calls are to be counted alone.
        WrongUse: No model is named, or the file is there already.
    """
    name = require_model_name(model, "a profile is drafted by a model, and none is named")
    # before anything is read or paid
    if out is not None:
        if out.exists():
            raise WrongUse(
                "the file is there already",
                where=str(out),
                hint="give another name",
                option="out",
            )
        require_writable_output_path(out)

    read = logs_from(logs, reading, progress)
    shown = draw_shown(read)
    if run.dry_run:
        raise plan_dry_run(model, run, SEED, lambda plan: draft_profile(plan.asker, shown))

    progress.note(
        f"Asking {name} for a profile: one call with {format_count(len(shown), 'conversation')}"
    )
    arguments = {"logs": list_source_names(logs)}
    with open_workspace(run, progress, read) as opened:
        drafted, usage = run_work_by_model(
            opened,
            model,
            SEED,
            arguments,
            lambda asker, setting: _ask(asker, setting, shown),
        )

    # a sentence in place of a profile says why nothing came
    if isinstance(drafted, str):
        raise ModelUnavailable(
            f"{name} drafted nothing of use ({drafted})",
            hint="ask another model, or write the profile yourself: `pollex domain new`",
        )

    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_text(out, drafted.toml())

    return ProfileDraft(drafted, name, len(shown), len(read), usage, out)


def draw_shown(logs: Logs) -> list[Conversation]:
    """Return the conversations that a model is shown, drawn at random, whatever their labels.

    Raises:
        BadInput: There is none.
    """
    possible = []
    for conversation in logs:
        if not conversation.not_scorable:
            possible.append(conversation)

    if not possible:
        raise BadInput(
            "no conversation has anything to draft from",
            hint="look at it with `pollex inspect`",
        )

    return draw_conversations(possible, MOST_CONVERSATIONS, np.random.default_rng(SEED))


async def _ask(
    asker: PromptAsker,
    setting: RunSettings,
    shown: Sequence[Conversation],
) -> DomainProfile | str:
    """Ask in a run of its own, which keeps the call in its ledger."""
    items = make_conversation_items(shown)
    fingerprint = {"conversations": compute_json_digest(items), "prompt": asker.fingerprint()}
    async with setting.begin_or_resume(COMMAND, fingerprint, [asker.name]) as run:
        # without it the ledger wouldn't know which run a call is of
        setting.tracer(run.id)
        drafted = await draft_profile(asker, shown)
        setting.store.finish(run.id, "done", roles=[asker.name])
        return drafted
