"""Scoring by several processes: the same rows, also where one of them is killed."""

from __future__ import annotations

import asyncio
import os
import signal

from small_runs import Learnt

from pollex.conversations.conversation import Conversation
from pollex.formats.read_logs import read_logs
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.unit_pool import SIZE, UnitPool
from pollex.services.units import UnitScorer


def test_a_killed_worker_is_replaced_and_scores_are_the_same_in_the_same_order(learnt: Learnt) -> None:
    log = list(read_logs(learnt.log))
    many: list[Conversation] = [
        one.model_copy(update={"id": f"{one.id}-{number}"}) for number in range(1 + 4 * SIZE // len(log)) for one in log
    ]
    scorer = UnitScorer(RubricSet.load(learnt.rubrics))
    with UnitPool(scorer, 1) as alone, UnitPool(scorer, 2) as pool:
        expected = asyncio.run(alone.scores(many))
        os.kill(pool.processes[0], signal.SIGKILL)
        assert asyncio.run(pool.scores(many)) == expected
        assert len(set(pool.processes)) == 2
