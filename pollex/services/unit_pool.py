"""Worker processes that score units; results come in the order of the conversations, whoever made them.

A worker that dies is replaced, and its unit is done again. Workers end with the process that began them, however that
ends: the pipe that they read from is closed then.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from pollex.conversations.conversation import Conversation
from pollex.errors import PollexError
from pollex.rubrics.netsat import Score
from pollex.services.event_loop import few_collections
from pollex.services.units import UnitScorer, packed_scores, packed_turns, unpacked_scores, unpacked_turns

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

SIZE = 64
"""Conversations of a unit."""
WORTH = 1000
"""Conversations for which it pays to start processes: each takes a second."""
TRIES = 2


class WorkerDied(PollexError):
    """Worker processes die at one unit."""

    exit_code = 1


@dataclass(eq=False)
class Worker:
    """A process, the pipe to it, and the unit that it works on."""

    process: BaseProcess
    pipe: Connection
    unit: int = -1


class UnitPool:
    """Scores batches of conversations in this process, or in several.

    Args:
        workers: Processes; 1: this one alone.
    """

    def __init__(self, scorer: UnitScorer, workers: int) -> None:
        self._scorer, self._workers = scorer, list[Worker]()
        if workers > 1:
            self._workers = [self._started() for _ in range(workers)]

    @property
    def processes(self) -> list[int]:
        """Ids of the worker processes."""
        return [worker.process.pid or 0 for worker in self._workers]

    async def scores(self, conversations: Sequence[Conversation]) -> list[Score]:
        """Score conversations, in their order."""
        units = [conversations[start : start + SIZE] for start in range(0, len(conversations), SIZE)]
        if self._workers:
            return await asyncio.to_thread(self._shared_out, units)
        found: list[Score] = []
        for unit in units:
            found += await self._scorer.ascores(unit)
            await asyncio.sleep(0)  # an interrupt is heard here
        return found

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.pipe.close()
            worker.process.terminate()
            worker.process.join()
        self._workers = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _started(self) -> Worker:
        context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, self._scorer), daemon=True)
        process.start()
        theirs.close()
        return Worker(process, ours)

    def _shared_out(self, units: Sequence[Sequence[Conversation]]) -> list[Score]:
        waiting, found = deque(range(len(units))), dict[int, list[Score]]()
        tries = dict.fromkeys(waiting, 0)
        while len(found) < len(units):
            for worker in self._workers:
                if worker.unit < 0 and waiting:
                    self._hand(worker, waiting.popleft(), units)
            busy = {worker.pipe: worker for worker in self._workers if worker.unit >= 0}
            for pipe in wait(list(busy)):
                worker = busy[cast(Connection, pipe)]
                try:
                    found[worker.unit], worker.unit = unpacked_scores(worker.pipe.recv()), -1
                except (EOFError, OSError):
                    unit = worker.unit
                    tries[unit] += 1
                    self._workers[self._workers.index(worker)] = self._started()
                    if tries[unit] >= TRIES:
                        first, last = units[unit][0].id, units[unit][-1].id
                        raise WorkerDied(
                            f"{TRIES} processes ended, each at the conversations from {first!r:.60} to {last!r:.60}",
                            remedy="score them in one process (`--set workers=1`), or look for too little memory",
                        ) from None
                    waiting.appendleft(unit)
        return [score for unit in range(len(units)) for score in found[unit]]

    def _hand(self, worker: Worker, unit: int, units: Sequence[Sequence[Conversation]]) -> None:
        worker.unit = unit
        with suppress(OSError):  # it died idle: that shows when its answer is waited for
            worker.pipe.send(packed_turns(units[unit]))


def work(pipe: Connection, scorer: UnitScorer) -> None:
    """Score what comes through the pipe until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that began this one decides
    with suppress(EOFError, OSError), few_collections():
        while True:
            given: list[Any] = pipe.recv()
            pipe.send(packed_scores(asyncio.run(scorer.ascores(unpacked_turns(given)))))
