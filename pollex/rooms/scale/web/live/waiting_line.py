"""The bounded queue before the one thread that scores, and the rubric set it scores with."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest

from pollex.conversations.conversation import Conversation
from pollex.errors import PollexError
from pollex.formats.scores import iterate_score_rows
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score
from pollex.services.evaluate import count_user_turns, score_beginnings
from pollex.services.named_sets import read_rubric_set
from pollex.services.scorer import Scorer

MAX_CONVERSATIONS_A_BATCH = 16
"""Conversations that are scored together: more would let one wait for the rest."""
MAX_BEGINNINGS_A_BATCH = 8
"""Beginnings of a conversation that are scored together, likewise."""
SET_CHECK_SECONDS = 1.0
"""Seconds between looks at the rubric set's file."""
LATEST_BATCH_WEIGHT = 0.1
"""Weight of the latest batch in the mean time."""

Row = dict[str, object]
EmitScore = Callable[[Score], None] | None


class WaitingLineFull(Exception):
    """The queue has no room.

    Args:
        after: Seconds after which there should be.
    """

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after


@dataclass
class WaitingLine:
    """Conversations that wait for their score, in order.

    Attributes:
        scorer: Replaced as a whole when the set's file changes: a batch is scored with one set.
        size: Conversations that may wait.
        draining: Whether no new conversations are taken.
        emit: Sends a score's OpenTelemetry events; None: they aren't wanted.
        stale: Why the set's file, as it is now, is not used; empty if it is.
    """

    path: Path
    scorer: Scorer
    size: int
    figures: ServiceMetrics
    store: Path
    emit: EmitScore = None
    draining: bool = False
    stale: str = ""
    _queue: asyncio.Queue[tuple[Conversation, asyncio.Future[Row]]] = field(
        default_factory=asyncio.Queue
    )
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, "pollex-scoring")
    )
    _open: int = 0
    _room: asyncio.Event = field(default_factory=asyncio.Event)
    _mean: float = 0.005
    _seen: tuple[int, int, int] = (0, 0, 0)

    def __post_init__(self) -> None:
        self._seen = self._stamp()
        self.figures.using(self.scorer.rubrics)

    @property
    def depth(self) -> int:
        """Conversations that have no score yet, those being scored among them."""
        return self._open

    def put(self, conversations: Sequence[Conversation]) -> list[asyncio.Future[Row]]:
        """Take conversations, all or none of them.

        Raises:
            Full: There is no room for all.
        """
        # how long to wait: what stands in line, at the mean time of one
        if self._open + len(conversations) > self.size:
            raise WaitingLineFull(max(1, math.ceil(self._open * self._mean)))

        # a future for each, in the order of the request
        futures = []
        for conversation in conversations:
            future: asyncio.Future[Row] = asyncio.get_running_loop().create_future()
            self._queue.put_nowait((conversation, future))
            futures.append(future)

        self._count(len(futures))
        return futures

    async def wait_and_put(self, conversation: Conversation) -> asyncio.Future[Row]:
        """Take a conversation as soon as there is room."""
        while True:
            try:
                return self.put([conversation])[0]
            except WaitingLineFull:
                self._room.clear()
                await self._room.wait()

    async def work(self) -> None:
        """Score what waits, at once where nothing else does, until canceled."""
        loop = asyncio.get_running_loop()
        while True:
            # whatever waits makes a batch, at least one
            batch = [await self._queue.get()]
            while len(batch) < MAX_CONVERSATIONS_A_BATCH and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            begun = time.perf_counter()
            conversations = [conversation for conversation, _ in batch]
            # one thread scores: arrays and models aren't shared between threads
            scores = await loop.run_in_executor(
                self._thread,
                score_batch,
                self.scorer,
                conversations,
                self.emit,
            )
            # a running mean, in which the latest batch counts for little
            seconds_each = (time.perf_counter() - begun) / len(batch)
            self._mean += LATEST_BATCH_WEIGHT * (seconds_each - self._mean)
            # a client that has gone cancels its future
            for (_, future), row in zip(batch, scores, strict=True):
                self.figures.scored(row, seconds_each)
                if not future.done():
                    future.set_result(row)

            self._count(-len(batch))

    async def after_turns(self, conversation: Conversation) -> Row:
        """Score a conversation after turns of the user, a few beginnings behind each batch that waits."""

        def score_many(parts: list[Conversation]) -> list[Score]:
            # few at a time, so that batches of others come between them
            cuts = []
            for start in range(0, len(parts), MAX_BEGINNINGS_A_BATCH):
                cuts.append(parts[start : start + MAX_BEGINNINGS_A_BATCH])

            scores: list[Score] = []
            for cut in cuts:
                scores.extend(self._thread.submit(self.scorer.score_many, cut).result())

            return scores

        scores = await asyncio.to_thread(
            score_beginnings,
            conversation,
            score_many,
            self.scorer.rubrics.turns,
        )
        # turns without a score are told by their number
        left_out = count_user_turns(conversation) - len(scores)
        return {"after_turns": scores} | ({"after_turns_left_out": left_out} if left_out else {})

    async def look(self) -> None:
        """Swap the set when its file changes, until canceled; a set that can't be used changes nothing."""
        while True:
            await asyncio.sleep(SET_CHECK_SECONDS)
            await self.reload()

    async def reload(self) -> None:
        """Read the set again if its file has changed."""
        # the file's time, size and inode tell whether it has changed
        if (stamp := self._stamp()) == self._seen:
            return

        self._seen = stamp
        try:
            # an unreadable set leaves the old one at work
            before = self.scorer
            self.scorer = await asyncio.to_thread(open_scorer, self.path, self.store)
        except PollexError as error:
            self.stale = str(error)
            self.figures.reloaded("refused")
            return

        self.stale = ""
        self.figures.using(self.scorer.rubrics)
        self.figures.reloaded("done")
        # In the thread that scores: after a batch that the old one may still be scoring.
        self._thread.submit(before.close)

    def close(self) -> None:
        """End the thread, and close the scorer."""
        self._thread.shutdown(wait=True)
        self.scorer.close()

    def _count(self, more: int) -> None:
        self._open += more
        self.figures.depth.set(self._open)
        if more < 0:
            self._room.set()

    def _stamp(self) -> tuple[int, int, int]:
        try:
            status = self.path.stat()
        except OSError:
            return self._seen  # between the removal of a file and the new one

        return status.st_mtime_ns, status.st_size, status.st_ino


def open_scorer(path: Path, store: Path) -> Scorer:
    """Read a set, and make its scorer ready: the first conversation shall not wait for models.

    Raises:
        PollexError: It can't be read, or can't score.
    """
    rubric_set = read_rubric_set(path, store)
    if rubric_set.judge.built_in:
        return Scorer(rubric_set)
    return Scorer(rubric_set, store=store)


def score_batch(
    scorer: Scorer,
    conversations: Sequence[Conversation],
    emit: EmitScore = None,
) -> list[Row]:
    """Score a batch; where that fails, each by itself: an error is one conversation's."""
    try:
        scores = scorer.batch(conversations)
        if emit is not None:
            for score in scores:
                emit(score)
        return list(iterate_score_rows(scores, scorer.rubrics))
    except Exception as error:  # whatever it was, the others are scored
        if len(conversations) > 1:
            return [score_batch(scorer, [conversation], emit)[0] for conversation in conversations]
        if isinstance(error, PollexError):
            what = str(error)
        else:
            what = f"unexpected {type(error).__name__}"

        return [{"id": conversations[0].id, "outcome": "failed", "error": what}]


LATENCY_BUCKETS_SECONDS = (
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
)
"""Seconds: the usual ones begin at five milliseconds, where scoring has ended."""


class ServiceMetrics:
    """Counters of one service, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._scored = Counter(
            "pollex_scored",
            "Conversations by outcome.",
            ["outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "pollex_scoring_seconds",
            "Time to score one.",
            buckets=LATENCY_BUCKETS_SECONDS,
            registry=registry,
        )
        self._requests = Counter(
            "pollex_requests",
            "Requests by status.",
            ["status"],
            registry=registry,
        )
        self._latency = Histogram(
            "pollex_request_seconds",
            "Time to answer one.",
            buckets=LATENCY_BUCKETS_SECONDS,
            registry=registry,
        )
        self._reloads = Counter(
            "pollex_set_reloads",
            "Reloads of the rubric set.",
            ["result"],
            registry=registry,
        )
        self._set = Info("pollex_set", "The rubric set.", registry=registry)
        self.depth = Gauge(
            "pollex_waiting",
            "Conversations without a score yet.",
            registry=registry,
        )

    def scored(self, row: dict[str, object], seconds: float) -> None:
        """Count a conversation."""
        self._scored.labels(str(row["outcome"])).inc()
        self._seconds.observe(seconds)

    def answered(self, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(str(status)).inc()
        self._latency.observe(seconds)

    def reloaded(self, result: str) -> None:
        """Count a reload."""
        self._reloads.labels(result).inc()

    def using(self, rubrics: RubricSet) -> None:
        """Name the set that is used now."""
        self._set.info(
            {
                "run": rubrics.run,
                "digest": rubrics.rubrics_digest,
                "judge": rubrics.judge.name,
            }
        )

    def text(self) -> bytes:
        """Return all in Prometheus' text format."""
        return generate_latest(self._registry)
