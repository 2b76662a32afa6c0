"""The unit of work of scoring with a model: what is paid for is kept in the unit's own ledger.

Whoever takes a unit over finds there what was paid for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from pollex.conversations.conversation import Conversation
from pollex.formats.places import StoragePath
from pollex.gateway.budget import Budget
from pollex.gateway.calls import CALL_LEASE_SECONDS, Capabilities, StoredReply
from pollex.gateway.gateway import Gateway
from pollex.gateway.probe import probe_endpoint
from pollex.outputs import require_output
from pollex.rooms.scale.services.parts import LEDGER_FOLDER_NAME, ScoringJob
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import ScoreColumns
from pollex.runs.options import ModelOptions
from pollex.runs.roles import (
    build_llm_run_roles,
    get_embedding_model_name,
    get_judge_seed,
    make_embedder,
    restore_model_options,
)
from pollex.runs.workspace import run_coroutine_to_end
from pollex.services.scorer import BatchScorer
from pollex.text import JsonObject


def probe_model(options: ModelOptions, rubrics: RubricSet) -> tuple[ModelOptions, Capabilities]:
    """Confirm the set's model, and probe it.

    Raises:
        WrongUse: Another judge was asked for, or the set's endpoint wasn't confirmed.
        ModelRefused: The endpoint refuses every call.
        ModelUnavailable: It can't be reached.
    """
    options = restore_model_options(options, rubrics.judge)
    return options, run_coroutine_to_end(
        probe_endpoint(
            options.endpoint(), max_wait=options.limits.max_wait, deadline=options.limits.deadline
        )
    )


def score_unit_by_model(
    job: ScoringJob,
    unit: str,
    conversations: Sequence[Conversation],
    budget: Budget | None,
) -> tuple[ScoreColumns, int]:
    """Score conversations by the set's model; return scores, and how many calls were sent.

    Args:
        unit: Names the ledger.
        budget: Shared with other workers.
    """
    # what was paid for in an earlier try is found in the ledger
    ledger = UnitLedger(StoragePath.at(job.out) / LEDGER_FOLDER_NAME, unit)
    try:
        return run_coroutine_to_end(
            _score_conversations(job, conversations, ledger, budget)
        ), ledger.calls
    finally:
        ledger.close()


async def _score_conversations(
    job: ScoringJob,
    conversations: Sequence[Conversation],
    ledger: UnitLedger,
    budget: Budget | None,
) -> ScoreColumns:
    assert job.capabilities is not None, "a model is asked for"
    record = job.rubrics.judge
    limits = job.model.limits
    # replies go through the unit's ledger and the budget of all workers
    async with Gateway(
        job.model.endpoint(), ledger, limits, window=job.capabilities.window, budget=budget
    ) as gateway:
        # no folder: workers have no store in common
        embedder = make_embedder(
            None,
            get_embedding_model_name(record, job.model.settings.embedding_model),
        )
        staff = build_llm_run_roles(
            job.model,
            job.rubrics.domain,
            job.salt,
            embedder,
            gateway,
            job.capabilities,
            get_judge_seed(record),
        )
        # rubrics that were learned to be answered without the model stay away from it
        judge = staff.leaving(job.rubrics.all_rubrics, job.rubrics.asked_judge.learned).roles.judge
        scorer = BatchScorer(
            job.rubrics,
            job.judges,
            job.costs,
            judge=judge,
            # more at once than the endpoint takes, so that it never waits
            at_once=2 * limits.concurrency,
        )
        return await scorer.batch(conversations)


class UnitLedger:
    """Fulfils `gateway.calls.Ledger`: a reply is on the disk before anybody reads it.

    On a disk the ledger is one file that is appended to; object stores can't append, and have one
    object a reply.

    Attributes:
        calls: Replies that were recorded here.

    Args:
        folder: Where ledgers lie.
        unit: The unit's key, which names the ledger.
    """

    def __init__(self, folder: StoragePath, unit: str) -> None:
        self._folder = folder
        self._unit = unit
        self._known: dict[str, StoredReply] = {}
        self._file: BinaryIO | None = None
        self.calls = 0
        for content in self._kept():
            for line in content.splitlines():
                self._take_up(line)

    async def lookup(self, key: str) -> StoredReply | None:
        """Return the last record of `key`, None when there is none."""
        return self._known.get(key)

    async def intend(
        self,
        key: str,  # noqa: ARG002
        attempt: int,  # noqa: ARG002
        about: Mapping[str, object],  # noqa: ARG002
        seconds: float = CALL_LEASE_SECONDS,  # noqa: ARG002
    ) -> bool:
        """Keep nothing: a unit has one worker, and a call that it didn't record when it died is sent again."""
        return True

    async def is_out(self, key: str) -> bool:  # noqa: ARG002
        return False

    async def record(
        self,
        key: str,
        attempt: int,
        outcome: JsonObject,
        raw: str,
    ) -> None:
        """Append what came back."""
        # a line holds the whole reply, so that a later try needs no other file
        line = json.dumps(
            {
                "key": key,
                "outcome": {**outcome, "attempt": attempt},
                "raw": raw,
            },
            ensure_ascii=False,
        )
        # written before it is counted: a worker may die at any time
        self._append(key, f"{line}\n".encode("utf-8", "replace"))
        self._known[key] = StoredReply(key, {**outcome, "attempt": attempt}, raw)
        self.calls += 1

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _kept(self) -> list[bytes]:
        if self._folder.local:
            file = self._folder / f"{self._unit}.jsonl"
            return [file.read()] if file.exists() else []

        ledger = self._folder / self._unit
        return [(ledger / name).read() for name in ledger.names()]

    def _take_up(self, line: bytes) -> None:
        try:
            values = json.loads(line)
        except ValueError:  # cut when its worker was killed: that reply is asked for again
            return

        self._known[values["key"]] = StoredReply(
            values["key"],
            values["outcome"],
            values["raw"],
        )

    def _append(self, key: str, line: bytes) -> None:
        # a far file can't be appended to, so each reply is a file of its own
        if not self._folder.local:
            (self._folder / self._unit / f"{len(self._known):08}-{key[:16]}.json").write(line)
            return

        # a local one is opened at the first reply: units without calls leave none
        if self._file is None:
            self._folder.make_folder()
            path = Path(self._folder.path) / f"{self._unit}.jsonl"
            require_output(path, named=False)
            self._file = path.open("ab")
            if self._file.tell():
                self._file.write(b"\n")  # ends a line that was cut

        self._file.write(line)
        # a worker that dies must not lose what was paid
        self._file.flush()
