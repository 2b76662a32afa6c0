"""The beginning, resumption and end of a run."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

from pollex.errors import Interrupted, PollexError, ResumeRefused
from pollex.graphs.context import (
    IS_FORKED_THREAD,
    MAX_CONVERSATIONS_PER_BATCH,
    SERVED_RUN_ID,
    NullProgress,
    Progress,
)
from pollex.rubrics.answers import RETRYABLE_OUTCOMES, NoAnswerOutcome
from pollex.store.resume import (
    find_resumable_run,
    find_run,
    list_stored_runs,
    read_settings_behind_digests,
)
from pollex.store.runs import FINISHED_STATUSES, Run
from pollex.store.spans import Tracer
from pollex.store.store import Store
from pollex.store.tables import FactRow, load_json
from pollex.text import JsonDict, JsonObject

SECONDS_BETWEEN_PROGRESS_NOTES = 0.25
"""Seconds between two notes at least."""


class StoredProgress:
    """Progress that is shown, and kept once a run has begun.

    Args:
        used: Calls, tokens and outcomes so far, JSON values.
    """

    def __init__(
        self,
        shown: Progress,
        store: Store,
        used: Callable[[], JsonObject],
    ) -> None:
        self._shown = shown
        self._store = store
        self._used = used
        self._stages: dict[str, dict[str, int]] = {}
        self._run, self._kept, self._at = "", JsonDict(), 0.0
        self._tracer: Tracer | None = None
        self._earlier: float | None = 0.0
        self._earlier_sent = 0

    def watch(self, tracer: Tracer) -> None:
        """Keep what a tracer counts, too: nodes, and the last errors."""
        self._tracer = tracer

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """Begin a stage; `done` of its items were done before a resume."""
        self._stages[stage] = {"done": done, "total": total}
        self._shown.start(stage, total, done)
        self.keep()

    def advance(self, stage: str, by: int = 1) -> None:
        """Count items of a stage as done."""
        if stage in self._stages:
            self._stages[stage]["done"] += by
        self.keep()
        self._shown.advance(stage, by)

    def note(self, text: str) -> None:
        """Show a line to the user."""
        self._shown.note(text)

    def keep(self, *, last: bool = False) -> None:
        """Store changed progress, at most every `SECONDS_BETWEEN_PROGRESS_NOTES` but for the last time."""
        # nothing before the run begins; then not too often, and always at the end
        if not self._run or (
            not last and time.monotonic() - self._at < SECONDS_BETWEEN_PROGRESS_NOTES
        ):
            return

        self._at = time.monotonic()
        used = dict(self._used())
        record: dict[str, object] = {
            "stages": {name: dict(stage) for name, stage in self._stages.items()},
            "used": used,
        }
        if self._earlier != 0:  # a resumed run: what it used is since then
            record["cost"] = _add_costs(self._earlier, get_cost_of_usage(used))
        if self._earlier_sent:
            record["sent"] = self._earlier_sent + (used.get("sent") or 0)

        if self._tracer is not None:
            # the nodes that ran, and the last errors
            nodes = {}
            for name, counted in self._tracer.nodes.items():
                nodes[name] = asdict(counted)
            record["nodes"] = nodes
            record["errors"] = list(self._tracer.errors)

        # only what changed is written
        if record != self._kept:
            self._store.pulse(self._run, record)
            self._kept = record

    @asynccontextmanager
    async def of_run(self, run: str) -> AsyncIterator[None]:
        """Keep it while a run goes on, also while its stages wait for calls."""
        self._run = run
        # a resumed run adds to what its earlier starts cost
        before = self._store.value("SELECT payload FROM progress WHERE run = ?", [run])
        self._earlier = 0.0
        self._earlier_sent = 0
        if before:
            payload = load_json(before)
            self._earlier = get_cost_of_run(payload)
            self._earlier_sent = get_calls_sent(payload) or 0

        # while calls are waited for, nothing advances: the beat still keeps what they cost
        async def beat() -> None:
            while True:
                self.keep()
                await asyncio.sleep(SECONDS_BETWEEN_PROGRESS_NOTES)

        beating = asyncio.create_task(beat())
        try:
            yield
        finally:
            beating.cancel()
            self.keep(last=True)
            self._run = ""


def get_calls_sent(payload: JsonObject) -> int | None:
    """Return the calls that a run sent so far, over all its starts; None where no model worked."""
    sent: int | None = payload.get("sent", payload.get("used", {}).get("sent"))
    return sent


def get_cost_of_usage(used: JsonObject) -> float | None:
    """Return the cost of calls; None if a price or a token count is missing."""
    # nothing sent costs nothing; what was sent without a price is unknown
    cost: float | None = used.get("cost", None if used.get("sent") else 0.0)
    return cost


def get_cost_of_run(payload: JsonObject) -> float | None:
    """Return the cost of a run so far, over all its starts; None if unknown."""
    cost: float | None
    if "cost" in payload:
        cost = payload["cost"]
    else:
        cost = get_cost_of_usage(payload.get("used", {}))

    return cost


def _add_costs(earlier: float | None, cost: float | None) -> float | None:
    # one unknown part makes the sum unknown
    if earlier is None or cost is None:
        return None
    return earlier + cost


STATE_FORMAT_VERSION = "3"
"""Of states and of nodes' names: a checkpoint of another can't be gone on with."""


def read_conversation_ids(store: Store, run: str) -> set[str]:
    """Return the ids of a run's stored conversations."""
    ids: set[str] = set()
    for row in store.ask(run, "SELECT id FROM conversations"):
        ids.add(row["id"])
    return ids


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Place and settings of a run; the same for all graphs.

    Attributes:
        arguments: As given by the user, for `pollex runs`.
        resume: Go on with the last unfinished run of the same fingerprint.
        retry_outcomes: Outcomes that a resume asks about again.
        secrets: Keys that must not be written anywhere.
        batch: Conversations in flight at once.
        at_once: Of these, how many are asked about at once: a few more than the endpoint has slots
            keep it busy.
        traced: Receives the run's tracer when the run begins.
        used: Calls, tokens and outcomes so far, as JSON values; stored with the run's progress.
        behind: What stands behind the digests of roles, to tell in words what is another; empty
            without a model.
        place: Where a model is asked, without secrets; empty without one. A resume asks there, or
            is refused.
    """

    store: Store
    progress: StoredProgress
    arguments: Mapping[str, object]
    resume: bool = False
    retry_outcomes: frozenset[NoAnswerOutcome] = RETRYABLE_OUTCOMES
    secrets: Collection[str] = ()
    batch: int = MAX_CONVERSATIONS_PER_BATCH
    at_once: int = MAX_CONVERSATIONS_PER_BATCH
    traced: Callable[[Tracer], None] = lambda _tracer: None
    used: Callable[[], JsonObject] = dict
    place: str = ""
    behind: Mapping[str, object] = field(default_factory=dict)

    def tracer(self, run: str) -> Tracer:
        """Create the run's tracer and announce it to its subscriber."""
        tracer = Tracer(self.store, run, self.secrets)
        self.traced(tracer)
        self.progress.watch(tracer)

        return tracer

    def of_run(self, run: str) -> JsonDict:
        """Return the fields that every graph's `Context` has, for a run."""
        return {
            "store": self.store,
            "run": run,
            "tracer": self.tracer(run),
            "secrets": self.secrets,
            "progress": self.progress,
            "batch": self.batch,
            "semaphore": asyncio.Semaphore(self.at_once),
        }

    def whole(self, fingerprint: Mapping[str, str]) -> dict[str, str]:
        """Return a run's fingerprint with what every run has."""
        return {**fingerprint, "graph": STATE_FORMAT_VERSION} | (
            {"endpoint": self.place} if self.place else {}
        )

    @classmethod
    def of(cls, store: Store, **changes: Any) -> RunSettings:
        """Make a setting without progress and arguments, for use from Python."""
        kept_progress = StoredProgress(
            changes.pop("progress", NullProgress()),
            store,
            changes.get("used", dict),
        )
        return cls(
            store=store,
            progress=kept_progress,
            arguments=changes.pop("arguments", {}),
            **changes,
        )

    @asynccontextmanager
    async def begin_or_resume(
        self,
        command: str,
        fingerprint: Mapping[str, str],
        roles: Sequence[str],
        named: Run | None = None,
    ) -> AsyncIterator[Run]:
        """Begin or resume a run, and record its end in every case but a kill.

        Args:
            named: The run to go on with, where the user named one.
        """
        run = await self._find_or_begin(command, self.whole(fingerprint), named)
        self.store.take_up(run.id, roles=roles)
        try:
            async with self.progress.of_run(run.id):
                yield run
        # each way to end is recorded, so that a resume finds the run
        except (KeyboardInterrupt, asyncio.CancelledError, Interrupted):
            self.store.finish(run.id, "interrupted", roles=roles)
            raise
        except PollexError as error:
            self.store.finish(run.id, "failed", roles=roles, result={"error": error.what})
            raise
        except Exception as error:
            # of an unknown error only the kind is stored: its message might quote somebody
            self.store.finish(
                run.id,
                "failed",
                roles=roles,
                result={"error": type(error).__name__},
            )
            raise

    async def _find_or_begin(
        self,
        command: str,
        fingerprint: Mapping[str, str],
        named: Run | None,
    ) -> Run:
        """Return the run that was named, one that is gone on with, or a new one."""
        # a state of another run was opened to go on from
        if named is None and SERVED_RUN_ID.get():
            before = find_run(self.store, SERVED_RUN_ID.get())
            # it stays as it is: who goes on from one of its states forks it
            if before.status not in FINISHED_STATUSES and not IS_FORKED_THREAD.get():
                return require_same_settings(before, fingerprint, self.store, self.behind)
            named = self._begin_after(before, command, fingerprint)
            await self.store.settle()  # answers that are taken over are read at once

        if named is not None:
            return named
        if self.resume:
            return self._find_resumable(command, fingerprint)
        return self._begin(command, fingerprint, self.arguments)

    def _begin(
        self,
        command: str,
        fingerprint: Mapping[str, str],
        arguments: Mapping[str, object],
    ) -> Run:
        run = self.store.begin(
            command,
            arguments=arguments,
            fingerprint=fingerprint,
            versions=collect_package_versions(),
        )
        # words for the digests, for a resume that has to say what changed
        if self.behind:
            from pollex.store.settings_told import make_settings_row  # the built-in roles have none

            self.store.keep([make_settings_row(run.id, self.behind)])

        return run

    def _begin_after(self, before: Run, command: str, fingerprint: Mapping[str, str]) -> Run:
        """Begin a run that goes on from a state of another one; what was learned and answered there is taken over.

        Raises:
            ResumeRefused: It learns, and with other settings; the message says with what.
        """
        store = self.store
        # answers are taken over, which only the same settings would give
        if command in LEARNING_COMMANDS:
            require_same_settings(before, fingerprint, store, self.behind)

        run = self._begin(command, fingerprint, {**self.arguments, "parent": before.id})
        # rubrics, extractions and steps, then all answers
        if command in LEARNING_COMMANDS:
            rows = store.rows(LEARNED_FACTS_QUERY, [before.id])
            store.keep([FactRow(run.id, row["kind"], row["id"], row["payload"]) for row in rows])
            store.copy_answers(before.id, run.id, None)

        return run

    def _find_resumable(self, command: str, fingerprint: Mapping[str, str]) -> Run:
        """Return the run that `--resume` goes on with.

        The last run is taken up though it ended, too: a kill may come between its end and the files
        that are made of it.
        Nothing of it is done again.
        """
        last = next(
            (run for run in reversed(list_stored_runs(self.store)) if run.command == command),
            None,
        )
        # a finished run of these very settings: its files may still be missing
        if last and last.status in FINISHED_STATUSES and last.fingerprint == dict(fingerprint):
            return last
        return find_resumable_run(self.store, command, fingerprint, self.behind)


LEARNING_COMMANDS = ("learn", "refit")
"""Commands whose later nodes work with what earlier ones kept."""

LEARNED_FACTS_QUERY = """
    SELECT kind, id, payload FROM facts WHERE run = ? AND kind IN ('rubric', 'extraction', 'step') ORDER BY rowid
"""


def require_same_settings(
    run: Run,
    fingerprint: Mapping[str, str],
    store: Store,
    behind: Mapping[str, object] | None = None,
) -> Run:
    """Return a run that has these settings.

    Raises:
        ResumeRefused: It was started with others; the message says with what.
    """
    from pollex.store.settings_told import (
        describe_fingerprint_differences,  # runs that begin need none
    )

    # the settings are compared by digest, and told in words
    if changed := describe_fingerprint_differences(
        run.fingerprint, fingerprint, read_settings_behind_digests(store, run), behind
    ):
        what = f"{run.id} was started with other settings ({'; '.join(changed)})"
        raise ResumeRefused(
            what,
            where=str(store.folder),
            hint="go on with the settings it was started with",
        )

    return run


def compute_json_digest(value: Any) -> str:
    """Twelve hex digits of JSON values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]


def collect_package_versions() -> dict[str, str]:
    """Return the versions of pollex and of the packages that affect results most."""
    return {
        name: version(name)
        for name in (
            "pollex",
            "langgraph",
            "numpy",
            "scikit-learn",
            "sentence-transformers",
            "duckdb",
        )
    }
