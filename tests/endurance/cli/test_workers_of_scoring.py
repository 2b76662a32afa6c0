"""Scoring by several processes: the same rows, also where one of them is killed."""

import asyncio
import multiprocessing
import os
import signal

from small_runs import Learnt

from pollex.conversations.conversation import Conversation
from pollex.formats.read_logs import read_logs
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.scorer import CONVERSATIONS_IN_BATCH, BatchScorer, ScoringPool


def test_a_killed_worker_is_replaced_and_scores_are_the_same_in_the_same_order(
    learnt: Learnt,
) -> None:
    log = list(read_logs(learnt.log))
    many: list[Conversation] = [
        one.model_copy(update={"id": f"{one.id}-{number}"})
        for number in range(1 + 4 * CONVERSATIONS_IN_BATCH // len(log))
        for one in log
    ]
    scorer = BatchScorer(RubricSet.load(learnt.rubrics))
    with ScoringPool(scorer, 1) as alone, ScoringPool(scorer, 2) as pool:
        expected = list(asyncio.run(alone.scores(many)))
        assert list(asyncio.run(pool.scores(many))) == expected
        killed = multiprocessing.active_children()[0].pid or 0
        os.kill(killed, signal.SIGKILL)
        assert list(asyncio.run(pool.scores(many))) == expected
        assert killed not in {one.pid for one in multiprocessing.active_children()}
    assert not multiprocessing.active_children()
