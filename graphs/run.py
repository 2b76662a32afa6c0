"""How a run begins, is taken up again, and ends, whatever happens."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import Interrupted, PollexError
from pollex.graphs.context import WAVE, NullProgress, Progress, waves_needed
from pollex.graphs.kept_progress import KeptProgress
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import MENDABLE, Outcome
from pollex.store.resume import resumable, runs
from pollex.store.rows import conversation_rows
from pollex.store.runs import FINISHED, Run
from pollex.store.spans import Tracer
from pollex.store.store import Store

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from pollex.graphs.learn.state import LearnSettings


def keep_conversations(
    store: Store, run: str, logs: Logs, training: Sequence[Conversation], held_out: Sequence[Conversation]
) -> None:
    """All conversations of the log, with the side that they are on; a resumed run has some of them already."""
    known = kept_ids(store, run)
    used = {c.id for c in (*training, *held_out)}
    store.put(conversation_rows(run, [c for c in training if c.id not in known], side="train"))
    store.put(conversation_rows(run, [c for c in held_out if c.id not in known], side="test"))
    store.put(conversation_rows(run, [c for c in logs if c.id not in known | used]))


def kept_ids(store: Store, run: str) -> set[str]:
    """Conversations of a run that are stored."""
    return {row["id"] for row in store.ask(run, "SELECT id FROM conversations")}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where and how a run works; the same for all graphs.

    Attributes:
        arguments: As given by the user, for `pollex runs`.
        resume: Go on with the last unfinished run of the same fingerprint.
        again: Outcomes that a resume asks about again.
        secrets: Keys that must not be written anywhere.
        wave: Conversations in flight at once.
        at_once: Of these, how many are asked about at once: a few more than the endpoint has slots keep it busy.
        traced: Told the run's tracer when the run begins.
        used: Calls, tokens and outcomes so far, JSON values; kept with how far the run is.
    """

    store: Store
    progress: Progress
    arguments: Mapping[str, Any]
    resume: bool = False
    again: frozenset[Outcome] = MENDABLE
    secrets: Collection[str] = ()
    wave: int = WAVE
    at_once: int = WAVE
    traced: Callable[[Tracer], None] = lambda _tracer: None
    used: Callable[[], Mapping[str, Any]] = dict

    def __post_init__(self) -> None:
        """Have progress kept as well as shown."""
        if not isinstance(self.progress, KeptProgress):
            object.__setattr__(self, "progress", KeptProgress(self.progress, self.store, self.used))

    def tracer(self, run: str) -> Tracer:
        """The run's tracer, told to whom it concerns."""
        tracer = Tracer(self.store, run, self.secrets)
        self.traced(tracer)
        return tracer

    def of_run(self, run: str) -> dict[str, Any]:
        """The fields that every graph's `Context` has, for a run."""
        return {
            "store": self.store,
            "run": run,
            "tracer": self.tracer(run),
            "secrets": self.secrets,
            "progress": self.progress,
            "wave": self.wave,
            "gate": asyncio.Semaphore(self.at_once),
        }

    @classmethod
    def of(cls, store: Store, **changes: Any) -> Setting:
        """A setting without progress and arguments, for use from Python."""
        progress, arguments = changes.pop("progress", NullProgress()), changes.pop("arguments", {})
        return cls(store=store, progress=progress, arguments=arguments, **changes)


@asynccontextmanager
async def running(
    command: str, fingerprint: Mapping[str, str], setting: Setting, roles: Sequence[str], named: Run | None = None
) -> AsyncIterator[Run]:
    """A run that was begun or is resumed; its end is noted whatever happens, short of a kill.

    Args:
        named: The run to go on with, where the user named one.
    """
    store = setting.store
    if named is not None:
        run = named
    elif setting.resume:
        run = taken_up(store, command, fingerprint)
    else:
        run = store.begin(command, arguments=setting.arguments, fingerprint=fingerprint, versions=versions())
    store.take_up(run.id, roles=roles)
    kept = setting.progress
    assert isinstance(kept, KeptProgress), "made so with the setting"
    try:
        async with kept.of_run(run.id):
            yield run
    except (KeyboardInterrupt, asyncio.CancelledError, Interrupted):
        store.finish(run.id, "interrupted", roles=roles)
        raise
    except PollexError as error:
        store.finish(run.id, "failed", roles=roles, result={"error": error.what})
        raise
    except Exception as error:
        store.finish(run.id, "failed", roles=roles, result={"error": type(error).__name__})
        raise


def taken_up(store: Store, command: str, fingerprint: Mapping[str, str]) -> Run:
    """The run that `--resume` goes on with.

    The last run is taken up though it ended, too: a kill may come between its end and the files that are made of it.
    Nothing of it is done again.
    """
    last = next((run for run in reversed(runs(store)) if run.command == command), None)
    if last and last.status in FINISHED and last.fingerprint == dict(fingerprint):
        return last
    return resumable(store, command, fingerprint)


def fingerprint_of(
    logs: Logs, *, settings: LearnSettings, profile: DomainProfile, roles: Mapping[str, str]
) -> dict[str, str]:
    """All that a learning run's result depends on: the settings in words, since a refused resume shows what changed."""
    return {
        "data": logs.fingerprint[:12],
        **{name: json.dumps(value) for name, value in vars(settings).items()},
        "domain": digest(profile.model_dump(mode="json")),
        **{role: fingerprint[:12] for role, fingerprint in roles.items()},
    }


def digest(value: Any) -> str:
    """Twelve hex digits of JSON values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]


def versions() -> dict[str, str]:
    """Of pollex and of what its results depend on most."""
    return {name: version(name) for name in ("pollex", "langgraph", "numpy", "scikit-learn", "openvino", "duckdb")}


def config(items: int, wave: int) -> RunnableConfig:
    """LangGraph's settings: a recursion limit that fits, since its default of 10,007 would let a loop bug run on."""
    return {"recursion_limit": waves_needed(2 * items, wave)}
