"""Runs: the list, the graph, activity over time, calls with their prompts, and how far a run is."""

import asyncio
import json
import re
import secrets
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from httpx2 import AsyncClient
from web_site import client_of, made_app

from pollex.graphs.context import NullProgress
from pollex.runs.run import StoredProgress
from pollex.store.ledger import StoreCallLedger
from pollex.store.resume import find_run, list_stored_runs
from pollex.store.spans import Tracer
from pollex.store.store import Store
from pollex.store.tables import SpanRow
from pollex.web.run_page import MAX_STRIP_BINS, read_spans, sum_times

CODE = "0123456789abcdef" * 2
SYSTEM = {"role": "system", "content": "<b>Judge</b>"}
SEALED = {
    "role": "user",
    "content": f"The conversation:\nDATA {CODE}\n[secret words]\nDATA {CODE}\nAnswer.",
}
ASKED = json.dumps({"model": "m", "temperature": 0, "messages": [SYSTEM, SEALED]})
USED = {
    "prompt_tokens": 1200,
    "completion_tokens": 400,
    "prompt_tokens_details": {"cached_tokens": 1000},
}
WEIGHED = [{"token": "Agree", "logprob": -0.2}, {"token": "Neutral", "logprob": -1.8}]
SURE = {"token": ".", "logprob": 0.0, "top_logprobs": [{"token": ".", "logprob": 0.0}]}
CHOICE = {
    "message": {"content": '{"answer": "Agree"}'},
    "finish_reason": "stop",
    "logprobs": {"content": [{"token": "Agree", "logprob": -0.2, "top_logprobs": WEIGHED}, SURE]},
}
CAME = json.dumps({"choices": [CHOICE], "usage": USED})


async def test_the_list_has_every_run_and_a_run_its_graph_with_what_was_not_reached(
    client: AsyncClient,
) -> None:
    page = (await client.get("/runs")).text
    assert page.index("score-2") < page.index("learn-1")
    assert "score-2" not in (await client.get("/runs", params={"command": "learn"})).text
    page = (await client.get("/runs/learn-1")).text
    assert 'role="group"' in page
    assert "not reached" in page
    assert 'href="#node-score"' not in page, "the graph's own span is no node of it"
    assert "the judge stumbled" in page


async def test_calls_that_bear_the_name_of_their_node_are_a_row_of_their_own(
    own: Store, web: AsyncClient
) -> None:
    run = list_stored_runs(own)[0]
    for kind in ("role", "call", "call"):
        own.put(
            [
                SpanRow(
                    run.id,
                    secrets.token_hex(4),
                    None,
                    "extract",
                    kind,
                    "",
                    (),
                    (),
                    run.started,
                    5.0,
                    "",
                )
            ]
        )
    own.flush()
    page = (await web.get(f"/runs/{run.id}")).text
    assert "1 × " in page[page.index('href="#node-extract"') :].partition("</a>")[0]
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert max((await web.get(f"/api/runs/{run.id}/strips")).json()["active"]["extract"]) == 1


def test_activity_is_how_many_spans_touch_each_stretch(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    with Store.open(tmp_path / ".pollex") as store:
        run = store.begin("score", arguments={}, fingerprint={}, versions={})
        begun = np.sort(rng.uniform(0, 9000, 200))
        lasting = rng.uniform(1, 3000, 200)
        day = run.started[:10]
        store.put(
            SpanRow(
                run.id,
                f"s{i}",
                None,
                "judge",
                "role",
                "",
                (),
                (),
                f"{day}T00:00:{a / 1000:09.6f}+00:00",
                b,
                "",
            )
            for i, (a, b) in enumerate(zip(begun.tolist(), lasting.tolist(), strict=True))
        )
        store.flush()
        run = run.model_copy(update={"started": f"{day}T00:00:00+00:00"})
        (node,) = sum_times(read_spans(store, run), 0.0, 12.0).nodes
    ends = begun + lasting
    edges = np.linspace(0, 12_000, MAX_STRIP_BINS + 1)
    by_hand = [((begun < high) & (ends >= low)).sum() for low, high in pairwise(edges.tolist())]
    assert np.abs(node.active - by_hand).max() <= 1, "a span at a border, to the millisecond"
    assert (node.n, node.errors) == (200, 0)
    assert node.median == pytest.approx(np.sort(lasting)[99])
    assert node.together == pytest.approx(lasting.sum())


async def test_a_call_is_shown_with_prompt_answer_and_tokens(own: Store, web: AsyncClient) -> None:
    run = own.begin("score", arguments={}, fingerprint={}, versions={})
    ledger = StoreCallLedger(own, Tracer(own, run.id))
    await ledger.intend("k" * 64, 0, {"stage": "judge", "item": "c1", "request": ASKED})
    await ledger.record("k" * 64, 0, {"status": 200, "attempt": 0, "seconds": 0.2}, CAME)
    await ledger.intend("q" * 64, 0, {"stage": "judge", "item": "c2"})
    own.pulse(run.id, {"stages": {}, "used": {"price": [1.0, 4.0, 0.5]}})
    asking = {
        "name": "ask",
        "kind": "call",
        "item": "c1",
        "inputs": ("k" * 64,),
        "outputs": (),
        "error": "",
    }
    own.put([SpanRow(run.id, "s1", None, started=run.started, ms=1.0, **asking)])
    own.finish(run.id, "done")
    listed = (await web.get(f"/runs/{run.id}/calls")).text
    assert "1,200" in listed
    assert "no reply came" in listed
    page = (await web.get(f"/runs/{run.id}/call", params={"key": "k" * 64})).text
    said = (
        "&lt;b&gt;Judge&lt;/b&gt;",
        "temperature",
        "1,000 of them cached",
        "$0.0028",
        "ended with “stop”",
    )
    for words in (*said, "Asked by", "Agree 82"):
        assert words in page, words
    folded = page.partition("Data between its boundary lines")[2].partition("</details>")[0]
    assert "secret words" in folded
    assert "Answer." not in folded
    by_cost = (
        await web.get(f"/api/runs/{run.id}/calls", params={"sort": "cost", "down": "1"})
    ).json()
    assert [one["cost"] for one in by_cost["calls"]] == [0.0028, None]
    other = (await web.get(f"/runs/{run.id}/call", params={"key": "q" * 64})).text
    assert "The prompt was not kept" in other
    assert (await web.get(f"/runs/{run.id}/call", params={"key": "none"})).status_code == 404


async def test_how_far_a_run_is_changes_with_it_and_costs_nothing_while_it_does_not(
    own: Store, web: AsyncClient
) -> None:
    run = own.begin("score", arguments={}, fingerprint={}, versions={})
    own.pulse(run.id, {"stages": {"score": {"done": 0, "total": 10}}, "used": {}})
    await own.settle()
    first = await web.get(f"/runs/{run.id}/live")
    assert "Scoring: 0 of 10" in first.text
    assert "running" in first.text
    same = await web.get(f"/runs/{run.id}/live", headers={"If-None-Match": first.headers["etag"]})
    assert same.status_code == 304
    used = {
        "sent": 7,
        "known": 1,
        "prompt_tokens": 5,
        "completion_tokens": 6,
        "cost": 0.5,
        "max_cost": 2.0,
    }
    failed = [{"node": "judge", "item": "c1", "text": "<b>refused</b>"}]
    nodes = {"judge": {"n": 9, "active": 1, "ms": 4.0, "errors": 1}}
    pulse = {
        "stages": {"score": {"done": 10, "total": 10}},
        "used": used,
        "nodes": nodes,
        "errors": failed,
    }
    own.pulse(run.id, pulse)
    await own.settle()
    told = (await web.get(f"/runs/{run.id}/live")).text
    assert "Scoring: 10 of 10" in told
    assert "$0.5000 of at most $2.00" in told
    assert "9 done, 1 at work, 1 failed" in told
    assert "&lt;b&gt;refused" in told
    await asyncio.to_thread(own.finish, run.id, "done")
    ended = await web.get(f"/runs/{run.id}/live")
    assert ended.headers["x-pollex-ended"] == "1"


async def test_a_run_whose_process_is_gone_was_killed(tmp_path: Path) -> None:
    with Store.open(tmp_path / ".pollex") as store:
        run = store.begin("score", arguments={}, fingerprint={}, versions={})
    with Store.open(tmp_path / ".pollex") as store:  # whoever began it let go without a word
        assert find_run(store, run.id).status == "unfinished"
        async with client_of(made_app(store)) as client:
            page = (await client.get("/runs")).text
            assert "killed" in page
            assert "--resume" in page


async def test_a_cost_is_that_of_all_starts_of_a_run_and_unknown_where_one_is(
    own: Store, web: AsyncClient
) -> None:
    run = own.begin(
        "score", arguments={"command": "pollex score a.jsonl"}, fingerprint={}, versions={}
    )
    for cost, shown in ((0.5, ["$0.5000"]), (2.0, ["$2.50"]), (None, [])):
        used = {"sent": 1, "known": 0, "prompt_tokens": 5, "completion_tokens": 6, "cost": cost}
        progress = StoredProgress(NullProgress(), own, lambda used=used: used)
        async with progress.of_run(run.id):
            pass
        await own.settle()
        page = (await web.get("/runs")).text
        assert re.findall(r'<td class="n">(\$[^<]+)</td></tr>', page) == shown
    own.finish(run.id, "interrupted")
    page = (await web.get("/runs")).text
    assert f"pollex score a.jsonl --resume --store {own.folder}</pre>" in page
