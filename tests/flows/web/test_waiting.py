"""What waits for people: cases in order, answers that are kept, and what goes back to the run."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from web_site import client_of, judged_run, made_app

from pollex.store.store import Store


@pytest.fixture
def doubted(tmp_path: Path) -> Iterator[tuple[Store, str]]:
    with Store.open(tmp_path / ".pollex") as store:
        yield store, judged_run(store)


@pytest.fixture
async def client(doubted: tuple[Store, str]) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(made_app(doubted[0])) as opened:
        yield opened


def case_of(page: str) -> str:
    found = re.search(r'name="conversation" value="([^"]+)"', page)
    assert found, page
    return found[1]


async def give(client: httpx2.AsyncClient, run: str, who: str, option: str, of: str, **more: Any) -> httpx2.Response:
    return await client.post("/api/given", json={"run": run, "who": who, "option": option, "conversation": of} | more)


async def test_a_case_shows_its_turns_and_the_votes_only_after_ones_own_answer(
    client: httpx2.AsyncClient, doubted: tuple[Store, str]
) -> None:
    run = doubted[1]
    assert run in (await client.get("/waiting")).text
    first = (await client.get(f"/waiting/{run}", params={"who": "ann"})).text
    assert "Where is parcel" in first
    assert "the runs voted" not in first
    kept = await client.post(
        "/api/given", data={"run": run, "who": "ann", "option": "yes", "conversation": case_of(first)}
    )
    assert kept.status_code == 303
    after = (await client.get(kept.headers["location"])).text
    assert "the runs voted yes 4, no 3" in after
    assert "nobody said so" in after
    assert "nobody said so" not in first
    assert "yes: kept, and not taken up yet" in after
    assert case_of(after) != case_of(first)


async def test_answers_on_which_people_differ_wait_until_somebody_decides_with_a_reason(
    client: httpx2.AsyncClient, doubted: tuple[Store, str]
) -> None:
    store, run = doubted
    case = case_of((await client.get(f"/waiting/{run}", params={"who": "ann"})).text)
    await give(client, run, "ann", "yes", case)
    assert "Take up 1" in (await client.get(f"/waiting/{run}")).text.replace("\u2009", " ")
    await give(client, run, "bob", "no", case, reason="I looked twice")
    assert store.value("SELECT count(*) FROM labels WHERE source = 'adjudicated'") == 0, "nobody differed before"
    page = (await client.get(f"/waiting/{run}", params={"who": "cat", "case": case})).text
    assert "A says yes" in page
    assert "people differ, and somebody has to decide" in (await client.get(f"/waiting/{run}?who=ann")).text
    assert "Take up" not in page
    assert (await client.post(f"/api/waiting/{run}/resume", json={})).status_code == 400
    assert (await give(client, run, "dan", "yes", case, reason="an opinion with a reason")).status_code == 200
    assert "Take up" not in (await client.get(f"/waiting/{run}")).text, "that decides nothing"
    assert (await give(client, run, "cat", "no", case, decides=True)).status_code == 400, "a decision takes a reason"
    await give(client, run, "cat", "no", case, decides=True, reason="it was not")
    assert (await give(client, run, "eve", "yes", case, decides=True, reason="me too")).status_code == 409
    assert store.value("SELECT count(*) FROM labels WHERE source = 'adjudicated'") == 1
    assert "Take up 1" in (await client.get(f"/waiting/{run}")).text.replace("\u2009", " ")
    assert store.value("SELECT count(*) FROM labels WHERE drawn = 'doubtful'") == 4


async def test_what_the_run_does_not_ask_is_refused(client: httpx2.AsyncClient, doubted: tuple[Store, str]) -> None:
    run = doubted[1]
    case = case_of((await client.get(f"/waiting/{run}", params={"who": "ann"})).text)
    assert (await give(client, run, "ann", "perhaps", case)).status_code == 400
    assert (await give(client, run, "ann", "yes", "conversation 1")).status_code == 409
    assert (await client.get("/waiting/learn-1")).status_code == 404
