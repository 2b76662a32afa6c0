"""Rubric sets are called by the log that they were learned from, and what changed is told of one log."""

from pathlib import Path

from rubric_set_by_hand import rubric_set
from web_site import client_of, made_app

from pollex.store.rows import make_fact_row
from pollex.store.rubric_sets import compute_rubric_set_digest
from pollex.store.store import Store


def learned_from(store: Store, log: str, created: str) -> str:
    """A rubric set that was learned from a log; returns its id."""
    run = store.begin("learn", arguments={"logs": [log]}, fingerprint={}, versions={})
    rubrics = rubric_set(run=run.id, created=created)
    store.put([make_fact_row(run.id, "rubric_set", "set", rubrics)])
    store.finish(run.id, "done")
    return compute_rubric_set_digest(rubrics)


async def test_sets_stand_under_their_logs_and_are_compared_with_the_one_before_of_the_same_log(
    tmp_path: Path,
) -> None:
    with Store.open(tmp_path / ".pollex") as store:
        days = [f"2026-11-0{day}T09:00:00+00:00" for day in (1, 2, 3)]
        shop, hotel, again = (
            learned_from(store, log, day)
            for log, day in zip(("shop.jsonl", "hotel.jsonl", "shop.jsonl"), days, strict=True)
        )
        async with client_of(made_app(store)) as client:
            listed = (await client.get("/sets")).text
            page = (await client.get(f"/sets/{hotel}")).text
    assert listed.count("What changed since") == 1
    assert f'href="/sets/diff?a={shop}&amp;b={again}"' in listed
    assert f'<a href="/sets/{hotel}">hotel.jsonl</a>' in listed
    assert "Rubrics of hotel.jsonl</h1>" in page
    first = page[page.index("<h1") : page.index("<h2")]
    assert "ranks above a bad one in" in first
    assert f'href="/begin/score?rubrics={hotel}">Score a log by it</a>' in first
