"""A run checked against another in the browser: failed, passed, undecided, and the same as the command says."""

import pytest
from httpx2 import AsyncClient
from web_site import scored

from pollex.rubrics.rubric_set import RubricSet
from pollex.services.check import check_runs
from pollex.store.resume import list_stored_runs, read_facts_by_id
from pollex.store.store import Store


@pytest.mark.parametrize("own", [120], indirect=True)
async def test_a_condition_passes_is_undecided_or_fails_and_says_why(
    own: Store, web: AsyncClient
) -> None:
    learn = list_stored_runs(own)[0].id
    found = RubricSet.parse(read_facts_by_id(own, learn, "rubric_set")["set"])
    best = own.ask(
        learn, "SELECT conversation FROM scores ORDER BY probability DESC NULLS LAST LIMIT 30"
    )
    numbers = [int(row["conversation"].split()[-1]) for row in best]
    for expected, drawn in (
        ("passed", range(120)),
        ("undecided", range(200, 260)),
        ("failed", numbers),
    ):
        run = scored(own, found, drawn)
        about = {"run": run, "against": learn, "what": "drift(p) above", "limit": "0.2"}
        page = (await web.get("/check", params=about)).text
        answer = (await web.get("/api/check", params=about)).json()
        (told,) = answer["verdicts"]
        assert answer["unscored"] == sum(n % 10 == 9 for n in (*range(120), *drawn)), (
            "those with a rubric unanswered"
        )
        assert "108\xa0conversations of the baseline are those" in page
        assert f"/check?run={run}" in (await web.get(f"/runs/{run}")).text
        verdict = check_runs(own, run, learn, found, ["drift(p) above 0.2"]).verdicts[0]
        assert told["status"] == verdict.status == expected
        assert told["figure"]["low"] == verdict.figure.low
        assert f" {expected}</td>" in page
        assert ("The gate is shut" in page) is (expected == "failed")


@pytest.mark.parametrize("own", [60], indirect=True)
async def test_what_can_t_be_checked_says_why_and_what_to_type(
    own: Store, web: AsyncClient
) -> None:
    learn, other = list_stored_runs(own)
    run = scored(
        own, RubricSet.parse(read_facts_by_id(own, learn.id, "rubric_set")["set"]), range(60)
    )
    answer = await web.get("/api/check", params={"run": run, "against": other.id, "limit": "1"})
    assert answer.status_code == 400
    assert "pollex check" in answer.json()["remedy"]
    once = {"run": run, "against": learn.id, "fail_if": "drift(p) above 0.2", "again": "1"}
    assert (await web.get("/api/check", params=once)).status_code == 400
    both = once | {"again": "", "fail_if": "drift(p) above 0.2; mean(p) drops by 0.1"}
    assert len((await web.get("/api/check", params=both)).json()["verdicts"]) == 2
    assert "is not here" in (await web.get("/check", params={"run": other.id})).text


@pytest.mark.parametrize("own", [60], indirect=True)
async def test_runs_are_named_by_their_logs_and_what_was_learned_from_is_the_usual_baseline(
    own: Store, web: AsyncClient
) -> None:
    learn = list_stored_runs(own)[0].id
    found = RubricSet.parse(read_facts_by_id(own, learn, "rubric_set")["set"])
    runs = [scored(own, found, range(60)) for _ in range(2)]
    page = (await web.get("/check", params={"run": runs[0]})).text
    others = ("/compare", "/conversations", "/begin/check")
    lists = [(await web.get(address)).text for address in others]
    assert f'<option value="{learn}" selected>{learn}: log.jsonl</option>' in page
    for listed in lists:
        assert f'<option value="{learn}">{learn}: log.jsonl</option>' in listed
