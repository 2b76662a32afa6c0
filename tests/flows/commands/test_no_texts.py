"""A store that keeps nothing of what was said."""

import asyncio
import json
from pathlib import Path

import duckdb
from httpx2 import Response
from small_runs import Learnt, Pollex
from web_site import client_of, made_app

from pollex.store.resume import conversations_of
from pollex.store.store import Store


async def page_of(kept: Store, run: str, conversation: str) -> Response:
    async with client_of(made_app(kept)) as client:
        return await client.get("/conversation", params={"run": run, "id": conversation})


def test_scores_are_kept_and_shown_without_a_word_of_the_log(pollex: Pollex, learnt: Learnt, tmp_path: Path) -> None:
    own = tmp_path / "own"
    given = ("--rubrics", learnt.rubrics, "--out", "no-texts.jsonl", "--store", own, "--set", "no_texts=yes", "--json")
    ended = pollex("score", learnt.log, *given)
    assert ended.code == 0, ended.err
    run = json.loads(ended.out)["run"]
    assert not any(path.suffix == ".parquet" for path in (own / "texts").rglob("*"))
    rows = duckdb.sql(f"SELECT opening FROM '{own}/runs/{run}/conversations*.parquet'").fetchall()
    assert rows
    assert set(rows) == {("",)}
    with Store.open(own, read_only=True) as kept:
        found = list(conversations_of(kept, run))
        assert len(found) == len(rows)
        assert not any(one.turns for one in found)
        page = asyncio.run(page_of(kept, run, found[0].id))
    assert page.status_code == 200
    assert "no_texts" in page.text
