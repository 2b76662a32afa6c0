"""A scorer on a model: one store, whoever asks, and let go of again."""

import asyncio
import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from protocol_server import ProtocolServer
from small_log import small_log
from small_runs import same_environment

import pollex
from pollex.errors import ModelUnavailable, WrongUse
from pollex.store.store import Store

PROBE = 1
"""Calls of a probe."""

MESSAGES = small_log()[3]["messages"]


@pytest.fixture(scope="module")
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer(script=[{"do": "attentive"}]) as running:
        yield running


@pytest.fixture(scope="module")
def rubrics(server: ProtocolServer, tmp_path_factory: pytest.TempPathFactory) -> pollex.RubricSet:
    store = tmp_path_factory.mktemp("learnt") / ".pollex"
    with same_environment():
        return pollex.learn(
            small_log(12), model="m", base_url=server.url, rubrics="generic", store=store
        )


def test_a_set_learnt_elsewhere_asks_for_its_place_and_leaves_the_store_to_others(
    rubrics: pollex.RubricSet, store: Path
) -> None:
    refused = pollex.Scorer(rubrics, store=store)
    with pytest.raises(WrongUse, match="confirm it: base_url='http"):
        refused.score(MESSAGES)
    Store.open(store).close()
    options = rubrics.judge.options.but(place="langchain:somebody.Chat:0123")
    theirs = rubrics.model_copy(
        update={"judge": rubrics.judge.model_copy(update={"options": options})}
    )
    with pytest.raises(WrongUse, match=r"answered at langchain:.* → give it in Python: .*model="):
        pollex.Scorer(theirs, store=store).score(MESSAGES)


def test_scorers_on_one_store_share_what_is_paid_for_also_after_one_that_nobody_holds_any_more(
    rubrics: pollex.RubricSet, server: ProtocolServer, store: Path
) -> None:
    first = pollex.Scorer(rubrics, base_url=server.url, store=store).score(MESSAGES)
    with pollex.Scorer(rubrics, base_url=server.url, store=store) as one:
        assert one.score(MESSAGES) == first
        judged = server.counts()["received"]
        with pollex.Scorer(rubrics, base_url=server.url, store=store) as other:
            assert other.score(MESSAGES) == first
    assert server.counts()["received"] == judged + PROBE


def test_threads_that_ask_first_share_one_store_and_one_probe(
    rubrics: pollex.RubricSet, server: ProtocolServer, store: Path
) -> None:
    with (
        pollex.Scorer(rubrics, base_url=server.url, store=store) as scorer,
        ThreadPoolExecutor(8) as threads,
    ):
        scores = list(threads.map(scorer.score, [row["messages"] for row in small_log()[:8]]))
        assert {score.outcome for score in scores} == {"scored"}
        assert scorer.score_many([row["messages"] for row in small_log()[:8]]) == scores


async def test_tasks_that_ask_first_share_one_store_and_a_blocking_call_among_them_waits(
    rubrics: pollex.RubricSet, server: ProtocolServer, store: Path
) -> None:
    with pollex.Scorer(rubrics, base_url=server.url, store=store) as scorer:
        tasks = [asyncio.create_task(scorer.ascore(MESSAGES)) for _ in range(3)]
        await asyncio.sleep(0)  # the first of them has begun
        blocking = scorer.score(MESSAGES)
        assert await asyncio.gather(*tasks) == [blocking] * 3


def test_event_loops_that_are_gone_keep_no_connections(
    rubrics: pollex.RubricSet, server: ProtocolServer, store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pollex.Scorer(rubrics, base_url=server.url, store=store) as scorer:
        for row in small_log()[:4]:
            asyncio.run(scorer.ascore(row["messages"]))
    del scorer
    gc.collect()
    assert "Unclosed" not in caplog.text


def test_a_scorer_asks_again_after_a_first_call_that_failed(
    rubrics: pollex.RubricSet, server: ProtocolServer, store: Path
) -> None:
    with pollex.Scorer(rubrics, base_url=server.url, store=store) as scorer:
        server.script([{"do": "status", "code": 500}])
        try:
            with pytest.raises(ModelUnavailable):
                scorer.score(MESSAGES)
        finally:
            server.script([{"do": "attentive"}])
        assert scorer.score(MESSAGES).outcome == "scored"
