"""What waits for people: cases in order, answers that are kept, and what goes back to the run."""

import re
from typing import Any

import httpx2
import pytest
from httpx2 import AsyncClient
from judged_run import judged_run
from web_site import conversation

from pollex.store.rows import make_label_row
from pollex.store.store import Store


@pytest.fixture
def run(own: Store) -> str:
    """A run of which two conversations wait."""
    return judged_run(own)


def case_of(page: str) -> str:
    found = re.search(r'name="conversation" value="([^"]+)"', page)
    assert found, page
    return found[1]


async def give(
    client: AsyncClient, run: str, who: str, option: str, of: str, **more: Any
) -> httpx2.Response:
    return await client.post(
        "/api/given", json={"run": run, "who": who, "option": option, "conversation": of} | more
    )


async def test_a_case_shows_its_turns_and_the_votes_only_after_ones_own_answer(
    web: AsyncClient, run: str
) -> None:
    assert run in (await web.get("/waiting")).text
    first = (await web.get(f"/waiting/{run}", params={"who": "ann"})).text
    assert "Where is parcel" in first
    assert "the runs voted" not in first
    assert (await give(web, run, "ann", "perhaps", case_of(first))).status_code == 400
    assert (await give(web, run, "ann", "yes", "conversation 1")).status_code == 409, (
        "it was not asked"
    )
    assert (await web.get("/waiting/learn-1")).status_code == 404
    given = {"run": run, "who": "ann", "option": "yes", "conversation": case_of(first)}
    kept = await web.post("/api/given", data=given)
    assert kept.status_code == 303
    after = (await web.get(kept.headers["location"])).text
    assert "the runs voted yes 4, no 3" in after
    assert "nobody said so" in after
    assert "nobody said so" not in first
    assert "yes: kept, and not taken up yet" in after
    assert case_of(after) != case_of(first)


async def test_answers_on_which_people_differ_wait_until_somebody_decides_with_a_reason(
    web: AsyncClient, own: Store, run: str
) -> None:
    case = case_of((await web.get(f"/waiting/{run}", params={"who": "ann"})).text)
    await give(web, run, "ann", "yes", case)
    assert "Take up 1" in (await web.get(f"/waiting/{run}")).text.replace("\u2009", " ")
    await give(web, run, "bob", "no", case, reason="I looked twice")
    assert own.value("SELECT count(*) FROM labels WHERE source = 'adjudicated'") == 0, (
        "nobody differed before"
    )
    page = (await web.get(f"/waiting/{run}", params={"who": "cat", "case": case})).text
    assert "A says yes" in page
    assert (
        "people differ, and somebody has to decide"
        in (await web.get(f"/waiting/{run}?who=ann")).text
    )
    assert "Take up" not in page
    assert (await web.post(f"/api/waiting/{run}/resume", json={})).status_code == 400
    assert (
        await give(web, run, "dan", "yes", case, reason="an opinion with a reason")
    ).status_code == 200
    assert "Take up" not in (await web.get(f"/waiting/{run}")).text, "that decides nothing"
    assert (await give(web, run, "cat", "no", case, decides=True)).status_code == 400, (
        "a decision takes a reason"
    )
    await give(web, run, "cat", "no", case, decides=True, reason="it was not")
    assert (
        await give(web, run, "eve", "yes", case, decides=True, reason="me too")
    ).status_code == 409
    assert own.value("SELECT count(*) FROM labels WHERE source = 'adjudicated'") == 1
    assert "Take up 1" in (await web.get(f"/waiting/{run}")).text.replace("\u2009", " ")
    assert own.value("SELECT count(*) FROM labels WHERE drawn = 'doubtful'") == 4


async def test_what_a_run_took_up_is_no_further_person_s_answer(
    web: AsyncClient, own: Store, run: str
) -> None:
    case = case_of((await web.get(f"/waiting/{run}", params={"who": "ann"})).text)
    for who, option in (("ann", "yes"), ("bob", "no")):
        await give(web, run, who, option, case)
    (question,) = {row["question"] for row in own.rows("SELECT question FROM labels")}
    taken = next(one for n in range(4) if (one := conversation(n)).id == case)
    own.put([make_label_row(run, taken, question, "yes", drawn="doubtful")])  # as the run does
    await web.post(
        "/api/thumbs", json={"run": "learn-1", "id": "conversation 4", "who": "ann", "value": "up"}
    )
    answer = await web.get("/label/agreement", params={"question": question})
    page = re.sub(r"\s+", " ", answer.text).replace("\N{NO-BREAK SPACE}", " ")
    assert "2 labels of people" in page
    assert " and ann" not in page
    assert f'<option value="{question}" selected>Was the task done?' in page
    rows = (await web.get("/api/export", params={"shape": "long"})).text.splitlines()[1:]
    assert [row.split(",")[2] for row in rows] == ["ann", "bob"], (
        "nor is a thumb of who saw the score"
    )
