"""Parts of scores, written unit by unit in whichever process."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING

from pollex.conversations.conversation import Conversation
from pollex.formats.places import StoragePath
from pollex.rooms.scale.formats.units import LogUnit
from pollex.rooms.scale.services.parts import (
    ScoredPart,
    ScoringJob,
    name_facts_file,
    read_unit,
    write_parquet,
)
from pollex.rubrics.score import ScoreColumns
from pollex.services.scorer import BatchScorer

if TYPE_CHECKING:
    from pollex.gateway.budget import Budget

CONVERSATIONS_A_BATCH = 512
"""Conversations scored at once."""


class PartWriter:
    """Does units of a job, one after the other, in whichever process.

    Args:
        budget: Shared with other workers; None: the options' limits are for this one alone.
    """

    def __init__(self, job: ScoringJob, budget: Budget | None = None) -> None:
        self._job = job
        self._budget = budget
        self._out = StoragePath.at(job.out)

    @cached_property
    def _scorer(self) -> BatchScorer:
        return BatchScorer(self._job.rubrics, self._job.judges, self._job.costs)

    def write(self, unit: LogUnit) -> ScoredPart:
        """Read, score and write a unit; bad rows are listed beside its part.

        Raises:
            PollexError: The file can't be read or written, or the model can't be asked.
        """
        job = self._job
        name = self._job.part_of(unit)
        conversations, bad = read_unit(unit, job.reading)
        # columns of scores, batch by batch; without a model no calls
        batches, calls = self._scored(unit, conversations)
        outcomes = Counter(outcome for scores in batches for outcome in scores.column("outcome"))
        # sums are enough to join the probabilities of all parts
        probabilities = []
        for scores in batches:
            for probability in scores.column("probability"):
                if probability is not None:
                    probabilities.append(probability)

        part = ScoredPart(
            file=name,
            source=unit.shown,
            rows=outcomes.total(),
            outcomes=dict(outcomes),
            bad_rows=[asdict(row) for row in bad],
            calls=calls,
            probabilities=len(probabilities),
            total=math.fsum(probabilities),
            squares=math.fsum(probability**2 for probability in probabilities),
            decided_good=sum(scores.column("decision").count("positive") for scores in batches),
        )
        # facts first: a part is there only when its file is
        (self._out / name_facts_file(name)).write(
            json.dumps(asdict(part), ensure_ascii=False).encode()
        )
        (self._out / name).write(write_parquet(batches, job.rubrics, job.judges))

        return part

    def _scored(
        self, unit: LogUnit, conversations: Sequence[Conversation]
    ) -> tuple[list[ScoreColumns], int]:
        # with a model the unit is asked as one, with a ledger of its own
        if self._job.capabilities is not None:
            # the client behind it takes a second to import
            from pollex.rooms.scale.services.units_by_model import score_unit_by_model

            scores, calls = score_unit_by_model(
                self._job,
                self._job.key_of(unit),
                conversations,
                self._budget,
            )
            return [scores], calls

        starts = range(0, len(conversations), CONVERSATIONS_A_BATCH)
        return [
            self._scorer.scores(conversations[start : start + CONVERSATIONS_A_BATCH])
            for start in starts
        ], 0
