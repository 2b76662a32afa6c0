"""What scoring comes to, and where scores go as they come."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import BadRow
from pollex.formats.scores import iterate_score_rows as score_rows
from pollex.formats.scores import open_score_file
from pollex.measures.drift import (
    StabilityIndex,
    is_drift_significant,
    measure_stability_of_bin_counts,
)
from pollex.measures.intervals import Figure
from pollex.reports.scores import ScoreTally
from pollex.rubrics.records import SpreadRecord
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score, ScoreColumns
from pollex.runs.usage import ModelUsage, render_usage_by_stage
from pollex.services.results import (
    TabularResult,
    describe_share,
    describe_unread,
    format_outcomes,
    make_calibration_support_json,
)
from pollex.services.scorer import BatchScorer
from pollex.text import JsonDict, TerminalLines

FEWEST_SCORES_FOR_DRIFT = 20
"""Conversations below which drift is not looked for."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ScoreResult(TabularResult):
    """The result of scoring.

    Attributes:
        scores: In the conversations' order; None if they were written to `out`.
        outcomes: Number of conversations by outcome.
        good: Share of good conversations: the mean of their probabilities.
        decided_good: Share that is decided to be good.
        unread: Answers that could not be read, and why one of them.
        drift: How unlike NetSAT is spread, beside the conversations that the set was learned on;
            None if unknown.
        asked: Conversations that a model was asked about because their label was in doubt; None
            without a cascade.
    """

    fine = ("scored",)
    columns = ("id", "decision", "probability", "netsat", "label", "confident", "outcome")

    run: str
    rubrics: RubricSet
    out: Path | None
    scores: tuple[Score, ...] | None
    outcomes: dict[str, int]
    n: int
    bad_rows: tuple[BadRow, ...] = ()
    usage: ModelUsage | None = None
    asked: int | None = None
    page: Path | None = None
    drift: StabilityIndex | None = None
    good: Figure | None = None
    decided_good: float | None = None
    unread: tuple[int, str] = (0, "")

    def records(self) -> Iterator[JsonDict]:
        ids = [rubric.id for rubric in self.rubrics.rubrics]
        return score_rows(ScoreColumns.of(self.scores or (), ids), self.rubrics)

    def export(self, *, as_: str, logs: Iterable[Conversation] = ()) -> list[dict[str, object]]:
        """Return the scores as another tool's requests, such as `langfuse`; see `pollex.export_scores`."""
        from pollex.services.hooks import get_score_forms  # other tools alone need it

        forms = get_score_forms()
        return forms.requests(as_, self.scores or (), self.rubrics, logs)

    def told(self) -> TerminalLines:
        """Yield what scoring came to."""
        yield format_outcomes(self.outcomes)
        yield from describe_unread(*self.unread)
        yield from render_usage_by_stage(self.usage)
        if self.asked is not None:
            yield f"The model was asked about {self.asked} of {self.n}, whose label was in doubt"

        yield from describe_share(self.good, self.decided_good, self.rubrics)
        yield f"Probabilities: {self.support_text}"
        page = f" and {self.page}" if self.page else ""
        yield f"Wrote {self.out}{page} ({self.rubrics.judge.name}; run {self.run})"

    def as_json(self) -> JsonDict:
        return (
            self.of("run", "out", "judge=rubrics.judge.name", "outcomes", "n", "bad_rows")
            | ({} if self.asked is None else self.of("asked"))
            | make_calibration_support_json(self.rubrics)
            | self.of("good", "decided_good", "at_chance=rubrics.at_chance")
            | ({"calibrated": False} if self.unlike else {})
            | ({} if self.drift is None else self.of("drift", "unlike"))
            | self.of("usage")
        )

    @property
    def unlike(self) -> bool:
        """Whether these conversations are unlike those of the set: its probabilities may not be calibrated here."""
        return is_drift_significant(self.drift)

    @property
    def support_text(self) -> str:
        """How far the probabilities are to be trusted, in words."""
        if self.drift is None or not self.unlike:
            return str(self.rubrics.support)

        value = f"stability index {self.drift.value:.2f}"
        return f"not known to be calibrated here: conversations are unlike those that the set was learned on ({value})"


class ScoreOutputs:
    """Where scores go as they come: a file with its page, events, and the counts of NetSAT in the bins of a set.

    Without a file they are kept.

    Attributes:
        tally: What the page shows.
    """

    def __init__(
        self,
        rubrics: RubricSet,
        file: Path | None,
        judges: Sequence[str],
        other: RubricSet | None,
        *,
        wide: bool,
        emit: Callable[[Score], None] | None,
    ) -> None:
        self.tally = ScoreTally(rubrics)
        self._rubrics, self._emit, self._kept = rubrics, emit, list[ScoreColumns]()
        self._counts = np.zeros(
            len(rubrics.spread.counts) if rubrics.spread else 0,
            np.int64,
        )
        # without a file the batches stay in memory
        self._file = (
            open_score_file(file, rubrics, judges, other, wide=wide)
            if file
            else nullcontext(self._kept.append)
        )
        self._begun = measure_cpu_seconds()

    def __enter__(self) -> Self:
        self._put = self._file.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.__exit__(kind, error, trace)

    def take(self, scores: ScoreColumns) -> None:
        """Take the scores of a batch, in the order of the conversations."""
        # counts in the bins of the set, whose own counts they are compared with
        if (learned := self._rubrics.spread) is not None:
            netsats = []
            for netsat in scores.column("netsat"):
                if netsat is not None:
                    netsats.append(netsat)

            bins = np.searchsorted(learned.edges, netsats, side="right")
            self._counts += np.bincount(bins, minlength=len(self._counts))

        # events go out one by one, the file gets the whole batch
        for score in scores if self._emit else ():
            self._emit(score)  # type: ignore[misc]  # only where there is one

        self.tally.count(scores)
        self._put(scores)

    def each(self) -> Iterator[Score]:
        """Yield the scores that were kept."""
        return (score for scores in self._kept for score in scores)

    def drift(self) -> StabilityIndex | None:
        """Compare the counts with those of the set; None for fewer than twenty conversations."""
        if self._rubrics.spread is None:
            return None
        return measure_drift(self._rubrics.spread, self._counts.tolist())

    def cost(self, count: int) -> str:
        """Say what a conversation cost."""
        embedded = BatchScorer(self._rubrics).reads_vectors
        ms = 1000 * (measure_cpu_seconds() - self._begun) / count
        return f"{ms:.1f} ms of CPU a conversation, {'some of its turns embedded' if embedded else 'no embedding'}"


def measure_cpu_seconds() -> float:
    """Return processor seconds of this process and of those of its children that ended."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def measure_drift(learned: SpreadRecord, counts: Sequence[int]) -> StabilityIndex | None:
    """Compare counts of NetSAT with those of a set, in its bins; None for fewer than twenty conversations."""
    if min(sum(counts), sum(learned.counts)) < FEWEST_SCORES_FOR_DRIFT:
        return None

    # the seed is fixed: the same counts give the same interval
    then, now = (np.array(bin_counts, dtype=np.float64) for bin_counts in (learned.counts, counts))
    return measure_stability_of_bin_counts(then, now, np.random.default_rng(0))
