"""What pages show, as JSON: the same figures, counted by hand."""

import pytest
from httpx2 import AsyncClient
from judged_run import judged_run

from pollex.store.resume import list_stored_runs
from pollex.store.store import Store


async def test_a_runs_spans_are_added_up_listed_and_drawn(
    client: AsyncClient, store: Store
) -> None:
    run = list_stored_runs(store)[0].id
    rows = store.rows("SELECT name, ms, error FROM spans WHERE run = ?", [run])
    nodes = {
        node["name"]: node for node in (await client.get(f"/api/runs/{run}/tree")).json()["nodes"]
    }
    assert {name: node["n"] for name, node in nodes.items()} == {"score": 1, "judge": 30}
    assert nodes["judge"]["together"] == pytest.approx(
        sum(r["ms"] for r in rows if r["name"] == "judge"), abs=0.1
    )
    assert nodes["judge"]["errors"] == 1
    strips = (await client.get(f"/api/runs/{run}/strips")).json()
    assert {len(one) for one in strips["active"].values()} == {400}
    assert strips["from"] < strips["to"]
    asked = {"name": "judge", "sort": "ms", "down": 1, "n": 5}
    told = (await client.get(f"/api/runs/{run}/spans", params=asked)).json()
    assert told["total"] == 30
    assert [one["ms"] for one in told["spans"]] == sorted(
        r["ms"] for r in rows if r["name"] == "judge"
    )[:-6:-1]
    errors = (await client.get(f"/api/runs/{run}/errors")).json()["errors"]
    assert [(one["error"], one["n"]) for one in errors] == [("the judge stumbled", 1)]


async def test_a_run_says_what_it_was_started_with_and_how_far_it_is(client: AsyncClient) -> None:
    told = (await client.get("/api/runs/learn-1")).json()
    assert (told["command"], told["status"], told["counts"]["conversations"]) == (
        "learn",
        "done",
        30,
    )
    live = await client.get("/api/runs/learn-1/live")
    assert live.json()["ended"]
    again = await client.get(
        "/api/runs/learn-1/live", headers={"If-None-Match": live.headers["etag"]}
    )
    assert again.status_code == 304
    assert (await client.get("/api/runs/learn-1/calls")).json()["total"] == 0
    assert (await client.get("/api/runs/learn-1/call?key=none")).status_code == 404


async def test_a_histogram_counts_what_a_list_finds(client: AsyncClient) -> None:
    asked = {"run": "learn-1", "thumb": "up"}
    bins = (await client.get("/api/conversations/histogram", params=asked)).json()["bins"]
    rows = (await client.get("/api/conversations", params=asked)).json()["rows"]
    assert sum(bins["found"]) == sum(row["netsat"] is not None for row in rows)
    assert len(bins["edges"]) == len(bins["all"]) + 1


async def test_sets_are_those_of_the_pages_with_where_a_rubric_came_from_and_how_two_sets_differ(
    client: AsyncClient,
) -> None:
    (one,) = (await client.get("/api/sets")).json()["sets"]
    whole = (await client.get(f"/api/sets/{one['id']}")).json()
    assert len(whole["set"]["rubrics"]) == one["rubrics"]
    assert (await client.get("/api/agreement")).json()["all"]["value"] is None
    told = (await client.get(f"/api/sets/{one['id']}/rubric", params={"id": "rubric1"})).json()
    assert {reason["id"] for reason in told["reasons"]} <= set(told["rubric"]["reason_ids"])
    assert told["rubric"]["id"] == "rubric1"
    assert (
        await client.get(f"/api/sets/{one['id']}/rubric", params={"id": "none"})
    ).status_code == 404
    same = (await client.get("/api/sets/diff", params={"a": one["id"], "b": one["id"]})).json()
    assert same["ok"]
    assert "reworded" not in str(same)


async def test_the_cases_that_a_run_waits_for_are_listed_with_what_people_said(
    own: Store, web: AsyncClient
) -> None:
    run = judged_run(own)
    told = (await web.get(f"/api/waiting/{run}")).json()
    assert (told["options"], told["cases"]) == (["yes", "no"], ["conversation 0", "conversation 2"])
    given = {"run": run, "conversation": "conversation 0", "who": "Ann", "option": "no"}
    assert (await web.post("/api/given", json=given)).status_code == 200
    assert (await web.get(f"/api/waiting/{run}")).json()["given"] == {"conversation 0": "no"}
    assert (await web.get("/api/waiting/learn-1")).status_code == 404
