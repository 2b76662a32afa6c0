"""The page on the share of good conversations: votes of the log, and answers of a random queue."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from web_site import client_of, made_app, made_store


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    with made_store(tmp_path / ".pollex", n=60) as store:
        async with client_of(made_app(store)) as opened:
            yield opened


async def test_votes_and_answers_drawn_at_random_are_estimated_apart(client: httpx2.AsyncClient) -> None:
    votes = (await client.get("/share")).text
    assert "of voters" in votes
    assert "of all, from labels at random" not in votes
    made = await client.post(
        "/api/queues", json={"name": "sample", "run": "learn-1", "kind": "random", "repeat_share": 0}
    )
    for _ in range(25):
        lease = (await client.post(f"/api/queues/{made.json()['queue']}/next", json={"who": "ann"})).json()["lease"]
        await client.post("/api/labels", json={"lease": lease, "who": "ann", "value": "up"})
    both = (await client.get("/share", params={"run": "learn-1"})).text
    assert "of all, from labels at random" in both
    assert "of all, if good and bad ones vote up to 2.0 times unequally" in both


async def test_an_unknown_field_is_words_on_the_page(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/share", params={"by": "<b>moon"})
    assert answer.status_code == 200
    assert "no conversation has the field" in answer.text
    assert "<b>moon" not in answer.text
