"""Stores that are older, empty or one-sided, and a clock that was set back: every page opens, and answers are kept."""

import csv
import re
import sqlite3
from collections import deque
from contextlib import closing
from html import unescape
from pathlib import Path

import httpx2
import pytest
from judged_run import judged_run
from rubric_set_by_hand import plain, rubric_set
from web_site import client_of, judged, made_app, made_store

from pollex.store.rows import make_fact_row, make_rubric_rows
from pollex.store.store import Store
from pollex.store.tables import format_current_time

MOST = 40
QUOTED = re.compile(r"id=conversation\+[12]$")
"""What the rubrics made by hand quote, whether the run has it or not."""


async def opened_from(client: httpx2.AsyncClient, *starts: str, on: bool = True) -> None:
    """Open pages and, `on` from there, those that they link to: at most `MOST`, and none calls a figure no number."""
    waiting = deque(starts)
    seen = set(starts)
    for _ in range(MOST):
        if not waiting:
            break
        path = waiting.popleft()
        answer = await client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.text[:2000]}"
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        assert not re.search(r"\b(nan|inf)\b|[-−]\d+\s(ms|s|min)\b", answer.text), path
        main = answer.text.partition("<main")[2]
        for link in map(unescape, re.findall(r'href="(/[^"#]*)', main)):
            if on and link not in seen and not QUOTED.search(link):
                seen.add(link)
                waiting.append(link)


async def test_an_answer_after_the_clock_was_set_back_counts_and_pages_of_such_runs_open(
    tmp_path: Path,
) -> None:
    with made_store(tmp_path / ".pollex", n=6) as store:
        judged_run(store)
        async with client_of(made_app(store)) as client:
            queue = (
                await client.post(
                    "/api/queues", json={"name": "q", "run": "learn-1", "random_share": 0}
                )
            ).json()
            lease = (
                await client.post(f"/api/queues/{queue['queue']}/next", json={"who": "ann"})
            ).json()["lease"]
            given = {"lease": lease, "who": "ann", "value": "up"}
            first = (await client.post("/api/labels", json=given)).json()["label"]
            await store.settle()
            with closing(sqlite3.connect(tmp_path / ".pollex" / "store.sqlite")) as kept:
                # a hundred years: the clock went wrong, and was set right
                later = format_current_time().replace("20", "21", 1)
                kept.execute("UPDATE labels SET time = ? WHERE id = ?", [later, first])
                kept.execute("UPDATE runs SET started = ? WHERE id LIKE 'learn%'", [later])
                kept.execute("UPDATE progress SET beat = ?", [later])
                kept.execute("UPDATE leases SET time = ?", [later])
                kept.commit()
            assert (
                await client.post("/api/labels", json=given | {"value": "down"})
            ).status_code == 200
            told = (await client.get("/api/export", params={"shape": "long"})).text
            assert [row["answer"] for row in csv.DictReader(told.splitlines())] == ["down"], told
            assert "unknown" in (await client.get("/runs")).text, (
                "how long a run took that ended before it began"
            )
            await opened_from(client, "/", "/runs", "/runs/learn-1", "/label/agreement")


def one_sided(store: Store, numbers: range) -> None:
    """Runs of `learn` and `score` over these conversations."""
    for command in ("learn", "score"):
        run = store.begin(command, fingerprint={}, versions={}, arguments={}).id
        found = rubric_set(plain, run=run)
        store.put(
            [make_fact_row(run, "rubric_set", "set", found), *make_rubric_rows(run, found.rubrics)]
        )
        judged(store, run, found, numbers, plain, "train")
        store.finish(run, "done")


async def test_pages_of_runs_without_conversations_open(tmp_path: Path) -> None:
    with Store.open(tmp_path / ".pollex") as store:
        one_sided(store, range(0))
        async with client_of(made_app(store)) as client:
            starts = [
                f"{page}?run=score-2"
                for page in ("/conversations", "/check", "/calibration", "/conversations")
            ]
            pairs = (
                "/compare?a=learn-1&b=score-2",
                "/runs/learn-1",
                "/runs/score-2",
                "/runs/score-2/calls",
                "/sets",
            )
            await opened_from(client, "/", *starts, *pairs, on=False)
            made = await client.post("/api/queues", json={"name": "q", "run": "learn-1"})
            await opened_from(client, f"/label/{made.json()['queue']}", on=False)


@pytest.mark.parametrize("kind", [0, 1], ids=["up", "down"])
async def test_pages_of_runs_whose_thumbs_are_all_alike_open(tmp_path: Path, kind: int) -> None:
    with Store.open(tmp_path / ".pollex") as store:
        one_sided(store, range(kind, 90 + kind, 3))
        async with client_of(made_app(store)) as client:
            starts = (
                "/",
                "/sets",
                "/runs/learn-1",
                "/compare?a=learn-1&b=score-2",
                "/check?run=score-2",
            )
            await opened_from(client, *starts, "/calibration", "/label/agreement")
