"""Where batches of conversations are scored: in this process, or in several."""

import asyncio
import gc
import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any, Self

from pollex.conversations.conversation import Conversation, Turn
from pollex.errors import PollexError
from pollex.rubrics.score import ScoreColumns
from pollex.services.event_loop import COLLECTED_AFTER
from pollex.services.scorer import TOGETHER, BatchScorer

WORTH = 1000
"""Conversations for which it pays to start processes: each takes a second."""
TRIES = 3


class WorkerDied(PollexError):
    """Worker processes die at the same conversations."""

    exit_code = 1


class ScoringPool:
    """Scores batches of conversations; results are in their order, whoever made them.

    A worker that dies is replaced, and what it had is done again. Workers end with the process that began them.

    Args:
        workers: Processes; 1: this one alone.
    """

    def __init__(self, scorer: BatchScorer, workers: int) -> None:
        self._scorer, self._workers = scorer, workers
        self._started: ProcessPoolExecutor | None = None

    @classmethod
    def for_log(cls, scorer: BatchScorer, count: int, workers: int | None = None) -> Self:
        """Return a pool for so many conversations; of one process a core where that pays, if `workers` is None."""
        if scorer.reads_vectors:  # the runtime of vectors has all cores already
            return cls(scorer, 1)
        return cls(scorer, workers or (cores() if count >= WORTH else 1))

    async def scores(self, conversations: Sequence[Conversation]) -> ScoreColumns:
        """Score conversations, in their order.

        Raises:
            WorkerDied: Processes end at the same conversations, again and again.
        """
        if self._workers == 1:
            return await self._scorer.batch(conversations)
        cuts = [conversations[start : start + TOGETHER] for start in range(0, len(conversations), TOGETHER)]
        found, tries = dict[int, ScoreColumns](), Counter[int]()
        while missing := [number for number in range(len(cuts)) if number not in found]:
            tries[missing[0]] += 1
            if tries[missing[0]] > TRIES:
                first, last = cuts[missing[0]][0].id, cuts[missing[0]][-1].id
                raise WorkerDied(
                    f"{TRIES} processes ended, each at the conversations from {first!r:.60} to {last!r:.60}",
                    remedy="score them in one process (`--set workers=1`), or look for too little memory",
                )
            await self._do({number: cuts[number] for number in missing}, found)
        return ScoreColumns.joined([found[number] for number in range(len(cuts))])

    async def _do(self, cuts: dict[int, Sequence[Conversation]], found: dict[int, ScoreColumns]) -> None:
        """Have the workers score; what one that dies had, and others with it, is not found."""
        if self._started is None:
            context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
            self._started = ProcessPoolExecutor(self._workers, context, begin, (self._scorer,))
        try:
            sent = {number: self._started.submit(work, packed_turns(some)) for number, some in cuts.items()}
            for number, future in sent.items():
                found[number] = await asyncio.wrap_future(future)
        except BrokenProcessPool:
            self.close()

    def close(self) -> None:
        """End the processes."""
        if self._started is not None:
            self._started.shutdown(cancel_futures=True)
            self._started = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_scorers: list[BatchScorer] = []
"""In a worker process its own."""


def begin(scorer: BatchScorer) -> None:
    """Make this process a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that began this one decides
    _scorers[:] = [scorer]
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def work(given: Sequence[Any]) -> ScoreColumns:
    """Score conversations in a worker process."""
    return asyncio.run(_scorers[0].batch(unpacked_turns(given)))


def packed_turns(conversations: Sequence[Conversation]) -> list[Any]:
    """Return what a judge reads of conversations, in a form that travels quickly."""
    return [
        (one.id, one.flags, [(turn.role, turn.content, turn.calls, turn.result) for turn in one.turns])
        for one in conversations
    ]


def unpacked_turns(given: Sequence[Any]) -> list[Conversation]:
    """Return the conversations of `packed_turns`."""
    return [
        Conversation.model_construct(
            id=id_,
            flags=flags,
            turns=tuple(
                [Turn.model_construct(role=r, content=c, calls=calls, result=back) for r, c, calls, back in turns]
            ),
        )
        for id_, flags, turns in given
    ]


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
