"""A run checked against another in the browser: failed, passed, open, and the same as the command says."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from rubric_set_by_hand import plain
from web_site import client_of, judged, made_app, made_store

from pollex.rubrics.rubric_set import RubricSet
from pollex.services.check import check_runs
from pollex.store.resume import facts_of, runs
from pollex.store.store import Store
from pollex.web.site import set_digest


def scored(store: Store, found: RubricSet, numbers: Sequence[int]) -> str:
    """A run that scored other conversations with the set of the learning run."""
    run = store.begin("score", fingerprint={"rubrics": set_digest(found)}, versions={}, arguments={})
    judged(store, run.id, found, numbers, plain, "")
    store.finish(run.id, "done", roles=["built-in (no LLM)"])
    return run.id


@pytest.mark.parametrize("drawn", ["the same", "others", "the best"])
async def test_a_condition_passes_is_open_or_fails_and_says_why(tmp_path: Path, drawn: str) -> None:
    with made_store(tmp_path / ".pollex", n=120) as store:
        learn = runs(store)[0].id
        found = RubricSet.parse(facts_of(store, learn, "rubric_set")["set"])
        best = store.ask(learn, "SELECT conversation FROM scores ORDER BY probability DESC NULLS LAST LIMIT 30")
        numbers: dict[str, Sequence[int]] = {
            "the same": range(120),
            "others": range(200, 260),
            "the best": [int(row["conversation"].split()[-1]) for row in best],
        }
        run = scored(store, found, numbers[drawn])
        about = {"run": run, "against": learn, "what": "drift(p) above", "limit": "0.2"}
        async with client_of(made_app(store)) as client:
            page = (await client.get("/check", params=about)).text
            told = (await client.get("/api/check", params=about)).json()
            assert f"/check?run={run}" in (await client.get(f"/runs/{run}")).text
        expected = {"the same": "passed", "others": "open", "the best": "failed"}[drawn]
        by_service = check_runs(store, run, learn, found, ["drift(p) above 0.2"])
        verdict = by_service.verdicts[0]
        assert told["verdicts"][0]["status"] == verdict.status == expected
        assert told["verdicts"][0]["figure"]["low"] == verdict.figure.low
        assert f" {expected}</td>" in page
        assert ("The gate is shut" in page) is (expected == "failed")


async def test_what_can_t_be_checked_says_why_and_what_to_type(tmp_path: Path) -> None:
    with made_store(tmp_path / ".pollex", n=60) as store:
        learn, other = runs(store)
        run = scored(store, RubricSet.parse(facts_of(store, learn.id, "rubric_set")["set"]), range(60))
        async with client_of(made_app(store)) as client:
            answer = await client.get("/api/check", params={"run": run, "against": other.id, "limit": "1"})
            assert answer.status_code == 400
            assert "pollex check" in answer.json()["remedy"]
            once = {"run": run, "against": learn.id, "fail_if": "drift(p) above 0.2", "again": "1"}
            assert (await client.get("/api/check", params=once)).status_code == 400
            both = once | {"again": "", "fail_if": "drift(p) above 0.2; mean(p) drops by 0.1"}
            assert len((await client.get("/api/check", params=both)).json()["verdicts"]) == 2
            assert "is not here" in (await client.get("/check", params={"run": other.id})).text
