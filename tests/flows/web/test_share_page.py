"""The page on the share of good conversations: votes of the log, and answers of a random queue."""

import pytest
from httpx2 import AsyncClient


@pytest.mark.parametrize("own", [60], indirect=True)
async def test_votes_and_answers_drawn_at_random_are_estimated_apart(web: AsyncClient) -> None:
    votes = (await web.get("/share")).text
    assert "of voters" in votes
    assert "of all, from labels at random" not in votes
    for value, n in (("down", 3), ("up", 4), ("up", 7), ("up", 10)):
        about = {"run": "learn-1", "id": f"conversation {n}", "who": "eve", "value": value}
        assert (await web.post("/api/thumbs", json=about)).status_code == 200
    assert (await web.get("/share")).text == votes, "who saw the score is no voter"
    made = await web.post(
        "/api/queues",
        json={"name": "sample", "run": "learn-1", "kind": "random", "repeat_share": 0},
    )
    for _ in range(25):
        lease = (
            await web.post(f"/api/queues/{made.json()['queue']}/next", json={"who": "ann"})
        ).json()["lease"]
        await web.post("/api/labels", json={"lease": lease, "who": "ann", "value": "up"})
    both = (await web.get("/share", params={"run": "learn-1"})).text
    assert "of all, from labels at random" in both
    assert "of all, if good and bad ones vote up to 2.0 times unequally" in both
    answer = await web.get("/share", params={"by": "<b>moon"})
    assert answer.status_code == 200
    assert "no conversation has the field" in answer.text
    assert "<b>moon" not in answer.text
