"""Conversations that are put into queues by hand, and lists by one source of thumbs."""

from httpx2 import AsyncClient
from web_site import client_of, conversation, made_app

from pollex.conversations.conversation import OddTextFlag
from pollex.store.rows import make_conversation_rows
from pollex.store.store import Store

IDS = [f"conversation {number}" for number in (3, 1, 3)]


async def test_ticked_conversations_come_first_in_their_queue_each_once(
    own: Store, web: AsyncClient
) -> None:
    page = (await web.get("/conversations?run=learn-1")).text
    assert page.count('name="id"') == 12
    assert 'data-key="x"' in page
    answer = await web.post("/api/chosen", data={"run": "learn-1", "name": "odd ones", "id": IDS})
    assert answer.status_code == 303
    queue = answer.headers["location"].rpartition("/")[2]
    assert "0 of 2 done" in (await web.get("/label")).text
    again = await web.post("/api/chosen", json={"run": "learn-1", "queue": queue, "id": IDS[:1]})
    assert again.json() == {"ok": True, "queue": queue, "added": 0}
    for wanted in ("conversation 3", "conversation 1", None):
        lease = (await web.post(f"/api/queues/{queue}/next", json={"who": "Ann"})).json()
        assert lease["conversation"] == wanted
        if wanted:
            label = {"lease": lease["lease"], "who": "Ann", "value": "up"}
            assert (await web.post("/api/labels", json=label)).status_code == 200
    drawn = {row["drawn"] for row in own.rows("SELECT drawn FROM labels")}
    assert drawn == {"chosen"}, "figures are never taken of these"


async def test_a_conversation_is_put_into_a_queue_from_its_own_page_without_script(
    web: AsyncClient,
) -> None:
    made = {"name": "doubts", "run": "learn-1", "kind": "random", "random_share": 0.2}
    queue = (await web.post("/api/queues", json=made)).json()["queue"]
    page = {"run": "learn-1", "id": "conversation 2"}
    assert f'<option value="{queue}">doubts' in (await web.get("/conversation", params=page)).text
    given = page | {"queue": queue, "reading": "1", "of": "thumb=up"}
    answer = await web.post("/api/chosen", data=given)
    assert answer.headers["location"].endswith("&id=conversation+2&of=thumb%3Dup")
    assert (
        f'In the queue <a href="/label/{queue}">doubts'
        in (await web.get("/conversation", params=page)).text
    )
    lease = (await web.post(f"/api/queues/{queue}/next", json={"who": "Ann"})).json()
    assert lease["conversation"] in {f"conversation {number}" for number in range(12)}


async def test_what_can_not_be_put_into_a_queue_is_said(own: Store, web: AsyncClient) -> None:
    queue = (await web.post("/api/queues", json={"name": "a", "run": "learn-1"})).json()["queue"]
    for given, status in (
        ({"run": "learn-1", "name": "a"}, 400),
        ({"run": "learn-1", "id": ["conversation 1"]}, 400),
        ({"run": "score-2", "queue": queue, "id": ["conversation 1"]}, 400),
        ({"run": "learn-1", "queue": queue, "id": ["nobody"]}, 404),
        ({"run": "learn-1", "queue": "none", "id": ["conversation 1"]}, 404),
    ):
        assert (await web.post("/api/chosen", data=given)).status_code == status, given
    async with client_of(made_app(own, read_only=True)) as client:
        page = (await client.get("/conversations")).text
        assert "/api/chosen" not in page
        assert 'data-key="x"' not in page
        assert (
            await client.post("/api/chosen", data={"run": "learn-1", "id": "x"})
        ).status_code == 403


async def test_a_list_shows_filters_and_sorts_by_the_thumbs_of_the_source_that_is_chosen(
    web: AsyncClient,
) -> None:
    assert "of people</option>" not in (await web.get("/conversations")).text
    about = {"run": "score-2", "id": "conversation 3", "who": "ann"}  # a thumb up in the log
    assert (await web.post("/api/thumbs", json=about | {"value": "down"})).status_code == 200
    wanted = {"run": "score-2", "source": "person", "thumb": "down"}
    told = (await web.get("/api/conversations", params=wanted)).json()
    assert [(row["id"], row["thumb"]) for row in told["rows"]] == [("conversation 3", 0)]
    log = (await web.get("/api/conversations", params=wanted | {"source": "log"})).json()
    assert "conversation 3" not in {row["id"] for row in log["rows"]}
    page = (await web.get("/conversations", params=wanted)).text
    assert '<option value="person" selected>of people</option>' in page
    assert "Thumb of people" in page
    made = {"name": "a", "run": "score-2", "kind": "filter", "filter": "source=person&thumb=down"}
    queue = (await web.post("/api/queues", json=made | {"random_share": 0})).json()["queue"]
    assert "0 of 1 done" in (await web.get(f"/label/{queue}")).text


async def test_what_is_odd_about_texts_is_counted_and_narrows_the_list(
    own: Store, web: AsyncClient
) -> None:
    run = own.begin("score", fingerprint={}, versions={}, arguments={}).id
    flags: tuple[tuple[OddTextFlag, ...], ...] = ((), ("bidi",), ("bidi", "too_large"))
    odd = [conversation(n).model_copy(update={"flags": each}) for n, each in enumerate(flags)]
    own.put(make_conversation_rows(run, odd))
    own.finish(run, "done")
    assert "Odd about the text" not in (await web.get("/conversations?run=learn-1")).text
    page = (await web.get("/conversations", params={"run": run})).text
    assert "Odd about the text" in page
    assert 'text that changes its direction <span class="muted">2' in page
    assert 'too large <span class="muted">1' in page
    found = (await web.get("/api/conversations", params={"run": run, "flag": "bidi"})).json()
    assert [row["id"] for row in found["rows"]] == ["conversation 1", "conversation 2"]
    assert (await web.get("/api/conversations", params={"run": run, "flag": "none"})).json()[
        "total"
    ] == 0
    shown = (await web.get("/conversation", params={"run": run, "id": "conversation 2"})).text
    assert "text that changes its direction, too large." in shown
