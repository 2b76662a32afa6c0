"""Two runs side by side: texts are paired, differences have intervals, and what flips comes first."""

from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from httpx2 import AsyncClient
from web_site import conversation

from pollex.services.paired_texts import estimate_differences, pair_texts
from pollex.store.resume import list_stored_runs
from pollex.store.rows import make_conversation_rows
from pollex.store.store import Store
from pollex.store.tables import ScoreRow
from pollex.web.lens import read_run_columns


@pytest.mark.parametrize("own", [24], indirect=True)
async def test_texts_are_paired_and_flips_come_first(own: Store, web: AsyncClient) -> None:
    ids = {run.command: run.id for run in list_stored_runs(own)}
    own.put(make_conversation_rows(ids["learn"], map(conversation, range(24)), side="test"))
    moved = {"conversation 1": (9.0, "positive"), "conversation 2": (-30.0, "negative")}
    own.put(
        ScoreRow(ids["score"], id_, netsat, label, True, 0.5)
        for id_, (netsat, label) in moved.items()
    )
    own.flush()
    told = (await web.get("/api/compare", params={"a": "learn-1", "b": "score-2"})).json()
    page = (await web.get("/compare", params={"a": "learn-1", "b": "score-2"})).text
    rows = own.ask(ids["learn"], "SELECT conversation AS id, label, probability FROM scores")
    before = {row["id"]: row for row in rows}
    assert (told["n"], told["only"]) == (24, [0, 0])
    flipped = {one["a"] for one in told["flips"]}
    assert flipped == {id_ for id_, (_, label) in moved.items() if before[id_]["label"] != label}
    changes = [abs(one["netsat"][1] - one["netsat"][0]) for one in told["flips"]]
    assert changes == sorted(changes, reverse=True)
    assert "NetSAT" not in told["differences"], "the store doesn't know that one set scored both"
    found = told["differences"]["P(up)"]
    by_hand = sum(0.5 - before[id_]["probability"] for id_ in moved) / found["n"]
    assert found["value"] == pytest.approx(by_hand)
    assert "Labels that changed" in page


def test_a_run_beside_itself_differs_in_nothing(own: Store) -> None:
    (_, run) = [read_run_columns(own, run) for run in list_stored_runs(own)]
    pairs = pair_texts(run, run)
    assert len(pairs.flips) == 0
    found = estimate_differences(pairs)
    of_two_sets = estimate_differences(pairs, one_scale=False)
    assert {name: figure.value for name, figure in found.items()} == {
        "NetSAT": 0.0,
        "P(up)": 0.0,
        "AUC": 0.0,
    }
    assert "NetSAT" not in of_two_sets, "it is on two scales"
    assert np.isnan(pairs.netsat[0]).sum() == 12 - pairs.scored
    every = pairs.labeled_unseen
    assert len(every) > 3
    seen = frozenset(run.hashes[pairs.rows[0][i]][:16] for i in every[:3])
    left = pair_texts(run, read_run_columns(own, list_stored_runs(own)[1], seen)).labeled_unseen
    assert set(left.tolist()) == set(every[3:].tolist()), (
        "the AUC has nothing that a set was learned from"
    )


async def test_two_runs_that_are_ticked_are_compared_the_earlier_one_first(
    client: AsyncClient,
) -> None:
    answer = await client.get("/compare?run=score-2&run=learn-1")
    assert answer.status_code == 303
    found = parse_qs(urlsplit(answer.headers["location"]).query)
    assert [found[name][0].rpartition("-")[0] for name in ("a", "b")] == ["learn-1", "score-2"]
    assert (await client.get("/compare?run=score-2")).status_code == 400
