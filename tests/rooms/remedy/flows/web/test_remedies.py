"""Pages of a remedy: what a change does, its pairs without their arms, and those that are only for reading."""

import html
import re
import shlex
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import AsyncClient
from remedy_log import REACTION, TARGET, read_table_log, table_rubrics
from web_site import client_of, made_app, made_store

from pollex.gateway.budget import Limits, Price
from pollex.rooms.remedy.measures.advice import REASONS_BY_VERDICT, explain_verdict
from pollex.rooms.remedy.services.result import VERDICTS_BY_RANK
from pollex.rubrics.rubric_set import RubricSet
from pollex.runs.options import ModelOptions
from pollex.runs.workspace import run_coroutine_to_end
from pollex.store.resume import list_stored_runs
from pollex.store.rows import make_conversation_rows
from pollex.store.rubric_sets import compute_rubric_set_digest
from pollex.store.store import Store
from pollex.store.tables import FactRow, dump_json

HOSTILE = "<script>alert(1)</script> [a link](javascript:alert(1)) \u202eevil"
EFFECT = {"value": 0.2, "low": 0.1, "high": 0.3, "n": 60, "users": 50}
EDIT: dict[str, Any] = {
    "name": "mine", "diff": f"--- old\n+++ new\n+{HOSTILE}\n",
    "prompt": "Be kind.", "purpose": "",
    "verdict": "judged better", "level": "R", "against": [],
    "primary": {"effect": EFFECT, "worst": EFFECT, "look": 4, "smallest": 0.1},
    "guardrails": [], "traffic": None, "thumbs": {"value": None, "reason": "too few"}, "pair": None, "wording": None,
    "people": {"value": 0.6, "low": 0.4, "high": 0.8, "n": 25, "reader_agrees": None}, "shown_over_sealed": None,
}  # fmt: skip
KEPT: dict[str, Any] = {
    "format": 1, "verdict": "judged better", "level": "R", "edits": [EDIT], "headroom": None, "ended": "",
    "target": {"id": "r1", "text": "It can't book", "polarity": "dsat"}, "notes": [HOSTILE], "missing": {},
    "candidates": [{"name": "two", "purpose": "", "diff": f"+{HOSTILE}", "refused": "a link", "proven": False}],
    "flatterer": {"said": ""}, "assistant": "m", "judge": "j", "second": None, "registered": "ab12", "proof": 1,
}  # fmt: skip
FROZEN = {"proof": "cd34", "contexts": [["c", 1]], "waves": [0], "replies": 2, "prompts": ["a", "b"], "margin": 0.1,
          "seed": 7, "questions": ["q"]}  # fmt: skip


def pair(
    n: int, change: float, fell: float | None, reader: float | None, old: str = "Sorry."
) -> dict[str, Any]:
    about = {
        "context": f"talk {n}:1",
        "conversation": f"talk {n}",
        "said": [f"user: table {n}?"],
        "edit": "new",
    }
    judged = {"change": change, "guardrail": "It is short", "fell": fell, "reader": reader}
    return about | judged | {"old": old, "new": f"Booked {n}."}


PAIRS = [
    pair(0, -0.5, 0.0, 1.0),
    pair(1, -0.1, -0.3, 0.0),
    pair(2, 0.0, None, None),
    pair(3, 0.4, 0.1, 1.0, HOSTILE),
]


@pytest.fixture
def proved(tmp_path: Path) -> Iterator[Store]:
    with made_store(tmp_path / ".pollex", n=3) as store:
        run = store.begin("remedy", arguments={"people": 5}, fingerprint={}, versions={}).id
        run_coroutine_to_end(store.write_step(run, "remedy", KEPT))
        run_coroutine_to_end(store.write_step(run, "registered", FROZEN))
        to_choose = {"key": "0" * 16, "conversation": "talk 3", "said": [], "1": "a", "2": "b"}
        run_coroutine_to_end(store.write_step(run, "pairs", [to_choose]))
        store.put(
            FactRow(run, "pair", str(n), dump_json({one["conversation"]: one}))
            for n, one in enumerate(PAIRS)
        )
        store.put([FactRow(run, "pair", "4", dump_json({}))])  # its conversation was forgotten
        store.finish(run, "done")
        yield store


@pytest.fixture
async def remedies(proved: Store) -> AsyncIterator[AsyncClient]:
    async with client_of(made_app(proved)) as opened:
        yield opened


async def test_a_run_that_proved_nothing_has_no_such_page(remedies: AsyncClient) -> None:
    answer = await remedies.get("/remedies/score-2")
    assert (answer.status_code, "proved nothing" in answer.text) == (404, True)
    for query in ("only=best", "at=-1"):
        assert (await remedies.get(f"/remedies/remedy-3?{query}")).status_code == 400


async def test_what_replies_diffs_and_notes_say_stays_text_and_what_people_choose_is_counted(
    remedies: AsyncClient,
) -> None:
    told = {"key": "0" * 16, "who": "Ann", "choice": "1"}
    assert (await remedies.post("/api/remedies/remedy-3", json=told)).status_code == 200
    tabs = {
        "": "",
        "pairs": "",
        "refused": "two: a link",
        "registered": "down as <code>ab12</code>: 1 context",
        "people": "5 pairs were asked for",
    }
    for tab, words in tabs.items():
        page = (await remedies.get("/remedies/remedy-3", params={"tab": tab})).text.replace(
            "\N{NO-BREAK SPACE}", " "
        )
        assert "<script>alert" not in page
        assert not re.search(r"href=.?javascript|\u202e", page), tab
        assert "&lt;script&gt;alert(1)" in page
        assert EDIT["verdict"] in page
        assert words in page
    assert "Ann: 1 pair" in page
    assert "60 % prefer the new reply" in page
    assert 'href="/remedies/remedy-3-' in (await remedies.get("/remedies")).text


async def test_where_nobody_was_asked_a_button_leads_to_the_form_with_people(
    tmp_path: Path,
) -> None:
    with made_store(tmp_path / ".pollex", n=3) as store:
        run = store.begin("remedy", arguments={}, fingerprint={}, versions={})
        run_coroutine_to_end(store.write_step(run.id, "remedy", KEPT))
        store.finish(run.id, "done")
        address = f"/remedies/{run.id}?tab=people"
        async with client_of(made_app(store)) as client:
            page = html.unescape((await client.get(address)).text)
        async with client_of(made_app(store, read_only=True)) as client:
            shown = (await client.get(address)).text
    link = f'href="/begin/remedy-run?like={run.id}&pairs=60">Have people compare</a>'
    assert link in page
    assert "Have people compare" not in shown


async def test_pairs_are_filtered_and_those_forgotten_are_gone(remedies: AsyncClient) -> None:
    filters = {"": [0, 3, 1, 2], "fell": [0, 1], "gained": [3], "differ": [0], "telling": [0, 1, 3]}
    for only, talks in filters.items():
        told = (await remedies.get("/api/remedies/remedy-3", params={"only": only})).json()
        assert [one["conversation"] for one in told["shown"]] == [f"talk {n}" for n in talks]
        assert (told["n"], told["of"]) == (len(talks), 4)


async def test_arms_stay_hidden_until_they_are_revealed(remedies: AsyncClient) -> None:
    page = (await remedies.get("/remedies/remedy-3", params={"only": "fell"})).text
    shown = re.sub(
        r"<details>.*?</details>", "", page[page.index('aria-label="Pair 1"') :], flags=re.DOTALL
    )
    assert "Booked 0." in shown
    assert not re.search(r"\b(new|old) (reply|one)\b", shown)
    assert re.search(r"<summary>Reveal</summary><p>[12] is the new reply", page)


async def test_telling_pairs_are_for_reading_and_nobody_can_choose_there(
    remedies: AsyncClient, proved: Store
) -> None:
    page = (await remedies.get("/remedies/remedy-3", params={"only": "telling"})).text
    assert "<form" not in page[page.index('aria-label="Pair 1"') :]
    told = {"key": "talk 0:1", "who": "Ann", "choice": "1"}
    assert (await remedies.post("/api/remedies/remedy-3", json=told)).status_code == 404
    assert proved.value("SELECT count(*) FROM labels") == 0


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[tuple[Store, RubricSet]]:
    """A store with a run of a set on a log in which every other booking fails."""
    logs = read_table_log(tmp_path / "log.jsonl", 240)
    found = table_rubrics(logs)
    with Store.open(tmp_path / ".pollex") as store:
        given = {"fingerprint": {"rubrics": compute_rubric_set_digest(found)}, "versions": {}}
        run = store.begin("score", arguments={"logs": ["a log.jsonl", "$(rm x)"]}, **given).id
        store.put(make_conversation_rows(run, logs.conversations))
        store.finish(run, "done")
        yield store, found


async def test_what_would_change_a_rubric_has_plan_and_command_and_starts_nothing(
    asked: tuple[Store, RubricSet],
) -> None:
    store, found = asked
    here = f"/sets/{compute_rubric_set_digest(found)}/change"
    models = {"assistant": ModelOptions(model="gpt", limits=Limits(price=Price(1.0, 2.0)))}
    async with client_of(made_app(store, files={"my set.json": found}, profiles=models)) as client:
        assert (await client.get(f"{here}/none")).status_code == 404
        page = await settled(client, f"{here}/{REACTION}")
        assert "no reply shows" in page
        assert (
            f'href="{here}/{TARGET}"'
            in (
                await client.get(f"/sets/{compute_rubric_set_digest(found)}/rubric?id={TARGET}")
            ).text
        )
        page = await settled(client, f"{here}/{TARGET}")
    assert "is found in 80 of 100 proofs" in page
    assert re.search(r"Cost: \$[\d.]+ at most", page)
    words = shlex.split(html.unescape(re.findall(r"<pre[^>]*>(.*?)</pre>", page, re.DOTALL)[-1]))
    assert words[3:7] == ["a log.jsonl", "$(rm x)", "--rubrics", "my set.json"]
    assert [run.command for run in list_stored_runs(store)] == ["score"]


async def test_where_too_few_failed_the_page_says_how_many_more_are_needed(
    asked: tuple[Store, RubricSet], tmp_path: Path
) -> None:
    _, found = asked
    with Store.open(tmp_path / "few") as store:
        run = store.begin(
            "score",
            arguments={},
            fingerprint={"rubrics": compute_rubric_set_digest(found)},
            versions={},
        ).id
        store.put(
            make_conversation_rows(run, read_table_log(tmp_path / "few.jsonl", 20).conversations)
        )
        store.finish(run, "done")
        async with client_of(made_app(store, files={"r.json": found})) as client:
            page = await settled(
                client, f"/sets/{compute_rubric_set_digest(found)}/change/{TARGET}"
            )
    assert re.search(
        r"\d+ failing replies of \d+ users are too few for a proof, which takes 30", page
    )
    assert 'class="error"' not in page
    assert "<pre" not in page  # no command that can't work
    assert "offer the nearest thing" in page
    assert page.count('href="/conversation?') == 3


async def settled(client: AsyncClient, path: str) -> str:
    """Wait until a page's plan is there."""
    for _ in range(200):
        if "Being worked out" not in (page := (await client.get(path)).text):
            return page
    raise AssertionError("it is never there")


LENGTH = "the new replies are all, or nearly all, longer"
TALKED = "this judge can be talked into this rubric: only people or thumbs can prove it"
PEOPLE = {"value": 0.9, "low": 0.8, "high": 1.0, "n": 30, "reader_agrees": None}


def with_verdict(verdict: str, against: list[str], people: Any = None) -> dict[str, Any]:
    """The record of a proof that came to a verdict."""
    edit = EDIT | {"verdict": verdict, "against": against, "people": people}
    return KEPT | {"verdict": verdict, "edits": [edit]}


def proof_with(store: Store, record: dict[str, Any]) -> str:
    """A proof that has ended with a record."""
    run = store.begin("remedy", arguments={}, fingerprint={}, versions={})
    run_coroutine_to_end(store.write_step(run.id, "remedy", record))
    store.finish(run.id, "done")
    return run.id


VERDICTS = [
    ("better, people agree", [], PEOPLE, "Release", "good", "Bring the log of what comes of it"),
    ("judged better, with a caveat", [LENGTH], None, "Try on part", "try", "Have people compare"),
    ("judged better", [], PEOPLE, "Try on part", "try", "Bring the log of what comes of it"),
    ("only people can tell", [TALKED], None, "Not enough seen", "open", "Have people compare"),
    ("no difference found", [], None, "Not enough seen", "open", "Prove it with more"),
    ("worse", ["worse: It is polite"], None, "Don't", "bad", "Write another change"),
]


@pytest.mark.parametrize(("verdict", "against", "people", "advice", "tone", "step"), VERDICTS)
async def test_a_verdict_has_its_reason_and_one_next_step_and_the_list_has_both(
    tmp_path: Path,
    verdict: str,
    against: list[str],
    people: Any,
    advice: str,
    tone: str,
    step: str,
) -> None:
    with made_store(tmp_path / ".pollex", n=3) as store:
        run = proof_with(store, with_verdict(verdict, against, people))
        async with client_of(made_app(store)) as client:
            page = html.unescape((await client.get(f"/remedies/{run}")).text)
            listed = html.unescape((await client.get("/remedies")).text)
            runs = html.unescape((await client.get("/runs")).text)
    first = page[page.index("<h1>") :]
    assert first.index(advice) < first.index(step) < first.index("In numbers")
    assert page.count('class="button main"') == 1, "one next step"
    for shown in (listed, runs):
        assert re.search(rf'class="outcome {tone}">{advice}', shown)
    assert re.search(rf'<a href="/[^"]*">{step}', listed)
    assert "It can't book" in listed


def test_reasons_of_verdicts_are_sentences_with_the_gravest_objection() -> None:
    told = {
        ("only people can tell", TALKED): f"the judge finds the new replies better, but {TALKED}",
        ("not cleared", "may be worse: It is polite"): "the new replies look better, but this may "
        "have got worse: It is polite",
        ("worse", "worse: It is polite"): "something got worse; this fell: It is polite",
        ("judged better", "open: cost, needs about 80 more users"): "the judge finds the new "
        "replies better, and nothing fell",
    }
    for (verdict, objection), why in told.items():
        assert explain_verdict(with_verdict(verdict, [objection])["edits"][0]) == why
    assert {*REASONS_BY_VERDICT} == {*VERDICTS_BY_RANK}, "each verdict has its reason"


async def test_what_else_was_measured_is_folded_and_pairs_come_when_they_are_asked_for(
    remedies: AsyncClient,
) -> None:
    page = (await remedies.get("/remedies/remedy-3")).text
    assert page.index("All that was measured") < page.index("What else changes")
    assert 'aria-label="Pair 1"' not in page
    assert "+++" not in page, "names of a diff's files say nothing"
    assert 'aria-label="Pair 1"' in (await remedies.get("/remedies/remedy-3?tab=pairs")).text


async def test_a_proof_that_waits_for_people_is_waiting_and_not_interrupted_in_all_lists(
    tmp_path: Path,
) -> None:
    with made_store(tmp_path / ".pollex", n=3) as store:
        run = store.begin("remedy", arguments={"people": 1}, fingerprint={}, versions={})
        to_choose = {"key": "0" * 16, "conversation": "talk 3", "said": [], "1": "a", "2": "b"}
        run_coroutine_to_end(store.write_step(run.id, "pairs", [to_choose]))
        store.finish(run.id, "interrupted")
        async with client_of(made_app(store)) as client:
            for path in ("/remedies", "/runs", "/runs?status=waiting", "/", f"/runs/{run.id}"):
                shown = (await client.get(path)).text
                assert "waiting for people</span>" in shown, path
                assert '<span class="state interrupted">' not in shown, path
            told = (await client.get("/api/runs")).json()["runs"]
    assert [row["status"] for row in told if row["id"] == run.id] == ["interrupted"]
