"""The scoring service: one, many, a stream; bad input, a full queue, a new set, and its end."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from small_log import small_log
from small_runs import Learnt

import pollex
from pollex.rooms.scale.web.live.app import make_application
from pollex.rooms.scale.web.live.waiting_line import ServiceMetrics, WaitingLine, open_scorer

TOKEN = "let me in"


@pytest.fixture
async def line(learnt: Learnt, tmp_path: Path) -> AsyncIterator[WaitingLine]:
    """The queue over a set of its own, with nobody who works on it yet."""
    path = tmp_path / "set.json"
    pollex.RubricSet.load(learnt.rubrics).save(path)
    made = WaitingLine(path, open_scorer(path, tmp_path), 40, ServiceMetrics(), tmp_path)
    yield made
    made.close()


@pytest.fixture
async def client(line: WaitingLine) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with the token, of a service that works."""
    working = asyncio.create_task(line.work())
    async with client_at(line, TOKEN, "here") as opened_client:
        yield opened_client
    working.cancel()


def client_at(line: WaitingLine, token: str | None, host: str) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(make_application(line, token))
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx2.AsyncClient(transport=transport, base_url=f"http://{host}", headers=headers)


async def depth(line: WaitingLine, wanted: int) -> None:
    while line.depth < wanted:  # noqa: ASYNC110 - the queue tells nobody that something waits
        await asyncio.sleep(0)


def rows(n: int) -> list[dict[str, Any]]:
    return [
        {"id": f"c-{place}", "messages": row["messages"]}
        for place, row in enumerate(small_log(n, seed=9)[:n])
    ]


async def streamed(client: httpx2.AsyncClient, *lines: str) -> list[dict[str, Any]]:
    headers = {"Content-Type": "application/x-ndjson"}
    answer = await client.post("/v1/score", content="\n".join(lines), headers=headers)
    return [json.loads(row) for row in answer.text.splitlines()]


async def test_one_many_and_a_stream_have_the_scores_of_the_scorer(
    client: httpx2.AsyncClient, line: WaitingLine
) -> None:
    given = rows(5)
    expected = [pollex.Scorer(line.scorer.rubrics).score(row) for row in given]
    one = (await client.post("/v1/score", json=given[0])).json()
    assert one["probability"] == expected[0].probability
    assert "answers" not in one
    assert (await client.post("/v1/score?answers=true", json=given[0])).json()["answers"]
    many = (await client.post("/v1/score", json={"conversations": given})).json()["scores"]
    stream = await streamed(client, *map(json.dumps, given))
    for found in (many, stream):
        assert [(row["id"], row["netsat"]) for row in found] == [
            (s.conversation_id, s.netsat) for s in expected
        ]


async def test_what_cannot_be_read_is_an_item_of_its_own(client: httpx2.AsyncClient) -> None:
    good = rows(1)[0]
    lines = [
        json.dumps(good),
        "{",
        json.dumps({"id": "x", "messages": 5}),
        "[" * 100_000,
        "",
        json.dumps(good),
    ]
    found = await streamed(client, *lines)
    assert [row["outcome"] for row in found] == [
        "scored",
        "unreadable",
        "unreadable",
        "unreadable",
        "scored",
    ]
    assert [row["id"] for row in found] == ["c-0", "1", "x", "3", "c-0"]
    many = (await client.post("/v1/score", json={"conversations": [good, 7]})).json()["scores"]
    assert [row["outcome"] for row in many] == ["scored", "unreadable"]
    odd = {"id": "\ud800", "messages": [{"role": "user", "content": "\ud800 \x00"}]}
    json_type = {"Content-Type": "application/json"}
    for body, headers, status in (
        (b'{"messages": 5}', json_type, 422),
        (b"{", json_type, 400),
        (b"{}", {}, 415),
        (json.dumps(odd).encode(), json_type, 200),
    ):
        assert (
            await client.post("/v1/score", content=body, headers=headers)
        ).status_code == status, body


async def test_nobody_without_the_token_gets_a_score_or_a_figure_and_without_one_a_request_names_this_machine(
    client: httpx2.AsyncClient, line: WaitingLine
) -> None:
    for said in ("", "Bearer wrong", f"Basic {TOKEN}"):
        headers = {"Authorization": said}
        assert (await client.post("/v1/score", json=rows(1)[0], headers=headers)).status_code == 401
        assert (await client.get("/metrics", headers=headers)).status_code == 401
        assert (await client.get("/health", headers=headers)).json()["ok"]
    described = (await client.get("/openapi.json", headers={"Authorization": ""})).json()
    assert {"/v1/score", "/health", "/ready", "/metrics"} == set(described["paths"])
    for host, status in (
        ("localhost:1", 200),
        ("127.0.0.1", 200),
        ("[::1]:8765", 200),
        ("evil.example:8765", 400),
    ):
        async with client_at(line, None, host) as open_one:
            assert (await open_one.get("/metrics")).status_code == status, host


async def test_a_page_of_another_site_gets_no_score(client: httpx2.AsyncClient) -> None:
    for foreign in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        for kind, body in (
            ("application/json", json.dumps(rows(1)[0])),
            ("application/x-ndjson", "{}"),
        ):
            headers = {"Content-Type": kind} | foreign
            assert (
                await client.post("/v1/score", content=body, headers=headers)
            ).status_code == 403
    assert (await client.post("/v1/score", json=rows(1)[0])).status_code == 200


async def test_a_full_queue_says_when_to_come_back_and_takes_nothing_of_the_request(
    line: WaitingLine,
) -> None:
    async with client_at(line, None, "localhost:8765") as client:
        first = asyncio.create_task(client.post("/v1/score", json={"conversations": rows(30)}))
        await depth(line, 30)
        refused = await client.post("/v1/score", json={"conversations": rows(11)})
        assert (refused.status_code, line.depth) == (429, 30)
        assert int(refused.headers["Retry-After"]) >= 1
        stream = asyncio.create_task(streamed(client, *map(json.dumps, rows(20))))
        await depth(line, 40)
        working = asyncio.create_task(line.work())
        assert len((await first).json()["scores"]) == 30
        assert len(await stream) == 20  # a stream waits for room
        working.cancel()


async def test_a_new_set_is_taken_without_a_gap_a_broken_one_is_not_and_a_service_that_stops_takes_no_more(
    client: httpx2.AsyncClient, line: WaitingLine
) -> None:
    before = (await client.post("/v1/score", json=rows(1)[0])).json()
    found = json.loads(line.path.read_text(encoding="utf-8"))
    line.path.write_text("{")
    await line.reload()
    assert "not valid JSON" in (await client.get("/health")).json()["stale"]
    assert (await client.post("/v1/score", json=rows(1)[0])).json() == before
    draft = line.path.with_name("draft")
    draft.write_text(json.dumps(found | {"run": "learn-99"}))
    os.replace(draft, line.path)  # noqa: PTH105
    under_way = asyncio.create_task(client.post("/v1/score", json={"conversations": rows(20)}))
    await line.reload()
    assert {row["outcome"] for row in (await under_way).json()["scores"]} == {"scored"}
    told = (await client.get("/health")).json()
    assert (told["set"], "stale" in told) == ("learn-99", False)
    figures = (await client.get("/metrics")).text
    assert 'pollex_set_reloads_total{result="refused"} 1.0' in figures
    assert 'pollex_scored_total{outcome="scored"} 22.0' in figures
    assert 'le="0.001"' in figures
    line.draining = True  # as a service that stops
    refused = await client.post("/v1/score", json=rows(1)[0])
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert (await client.get("/ready")).status_code == 503
    assert (await client.get("/health")).status_code == 200


async def test_one_conversation_can_have_a_score_after_each_turn_of_the_user_and_of_a_long_one_the_rest_is_said(
    client: httpx2.AsyncClient,
) -> None:
    (given,) = rows(1)
    found = (await client.post("/v1/score?turns=true", json=given)).json()
    users = [turn for turn in given["messages"] if turn["role"] == "user"]
    assert [row["turns"] for row in found["after_turns"]] == list(range(1, len(users) + 1))
    assert found["after_turns"][-1]["netsat"] == found["netsat"]
    # nobody measured whether it helps
    assert all(row["probability"] is None for row in found["after_turns"])
    turn = {"role": "user", "content": "Please book it."}, {"role": "assistant", "content": "Done."}
    found = (await client.post("/v1/score?turns=true", json={"messages": [*turn] * 60})).json()
    assert (len(found["after_turns"]), found["after_turns_left_out"]) == (50, 10)
