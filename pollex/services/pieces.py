"""Scoring in pieces: how a set that asks no model is given its work, and where its scores go meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pollex.formats.scores import scores_out
from pollex.reports.scores import Tally
from pollex.rubrics.netsat import Score
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.roles import Workers
from pollex.services.unit_pool import WORTH, UnitPool
from pollex.services.units import UnitScorer

Told = Callable[[Sequence[Score]], None]


def nothing(_scores: Sequence[Score]) -> None:
    """Take no scores: they are read from the store."""


@dataclass(frozen=True)
class Cut:
    """How the work is cut into pieces.

    Attributes:
        workers: Processes; None: one a core where there is work for them.
        told: Told the scores of each batch, in the order of the conversations.
    """

    judges: Sequence[str] = ()
    costs: tuple[float, float] = (1.0, 1.0)
    workers: int | None = None
    told: Told = nothing

    def pool(self, rubrics: RubricSet, staff: Workers, count: int) -> UnitPool | None:
        """Return what scores batches; None where a model is asked, or a starter, whose answers are kept beside."""
        if staff.gateway is not None or rubrics.starter is not None:
            return None
        scorer = UnitScorer(rubrics, self.judges, self.costs, staff.embedder.model)
        scorer.judge = staff.roles.judge  # with its cache of vectors
        if scorer.reads_vectors:  # the runtime of vectors has all cores already
            return UnitPool(scorer, 1)
        return UnitPool(scorer, self.workers or (cores() if count >= WORTH else 1))


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Stream:
    """Scores on their way to a file, or to a list.

    Attributes:
        kept: Where there is no file.

    Args:
        watch: Sees the scores pass.
    """

    def __init__(self, watch: Callable[[Iterable[Score]], Iterator[Score]]) -> None:
        self.kept: list[Score] = []
        self._watch, self._put = watch, self.kept.extend
        self._begun = self._ended = 0.0

    @contextmanager
    def into(
        self, out: Path | None, rubrics: RubricSet, judges: Sequence[str], *, wide: bool, tally: Tally
    ) -> Iterator[None]:
        """Send the scores that come meanwhile into a file, which appears at the end; None: into the list."""
        self._begun = cpu_seconds()
        if out is None:
            yield
        else:
            with scores_out(out, rubrics, judges, wide=wide) as put:
                self._put = lambda scores: put(tally.watch(scores))
                yield
        self._ended = cpu_seconds()

    def take(self, scores: Sequence[Score]) -> None:
        """Take the scores of a batch."""
        self._put(self._watch(scores))

    def cost(self, rubrics: RubricSet, count: int) -> str:
        """Say what a conversation cost."""
        embedded = UnitScorer(rubrics).reads_vectors
        ms = 1000 * (self._ended - self._begun) / count
        return f"{ms:.1f} ms of CPU a conversation, {'some of its turns embedded' if embedded else 'no embedding'}"


def cpu_seconds() -> float:
    """Return processor seconds of this process and of those of its children that ended."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system
