"""What a command came to has a page of its own, made of its result's values, that outlives the server."""

import json
from html import unescape
from pathlib import Path
from typing import Any

from web_site import client_of, made_app

from pollex.store.store import Store
from pollex.web.children import Child, Children
from pollex.web.site import Site


def ended(site: Site, told: Any, *words: str, state: str = "done") -> Child:
    """Put a command that has ended beside others, as a server does."""
    record = site.children.folder / "0123abcd.json"
    child = Child("0123abcd", "A command", words, "/begin", record, told=told, state=state)  # type: ignore[arg-type]
    site.children.by_id[child.id] = child
    return child


def figure(value: float | None, low: float | None = None, high: float | None = None) -> Any:
    undefined = "" if value is not None else "too few"
    fields = {"value": value, "low": low, "high": high, "n": 40}
    return fields | {"undefined": undefined, "units": None}


def comparison(first: str, second: str) -> dict[str, Any]:
    rubric = {
        "id": "r1",
        "polarity": "dsat",
        "text": "The assistant <b>refuses</b>.",
        "before": 2.0,
    }
    rubric |= {"after": None, "difference": figure(1.5, 0.5, 2.5), "moved": True}
    watch = {"stability": {}, "unlike": figure(None), "expected_log_loss": [0.5, 0.6]}
    return {
        "first": first,
        "second": second,
        "sizes": [40, 41],
        "paired": 0,
        "means": [0.6, 0.4],
        "good": [figure(0.6, 0.5, 0.7), figure(0.4, 0.3, 0.5)],
        "probability": figure(-0.2, -0.3, -0.1),
        "netsat": figure(-2.0, -3.0, -1.0),
        "rubrics": [rubric],
        "share": None,
        "labels": [0, 0],
        "plan": {"difference": 0.05, "conversations": 900, "labels": 800, "labels_alone": 1200},
        "watch": watch | {"held_out_log_loss": None},
        "notes": ["Scores understate it."],
    }


EVALUATION = {
    "n": 40,
    "positives": 25,
    "negatives": 15,
    "auc": 0.81,
    "accuracy": 0.7,
    "recall": None,
    "intervals": {"auc": [0.7, 0.9], "accuracy": [0.6, 0.8]},
    "undefined": {"recall": "no thumb up"},
    "at_chance": "",
    "learned_from": 7,
    "fitted_to": 0,
    "probability": {
        "n": 40,
        "log_loss": 0.4,
        "share_log_loss": 0.6,
        "intervals": {"log_loss": [0.3, 0.5], "share_log_loss": [0.5, 0.7]},
        "undefined": {},
    },
}


async def page_of(store: Store, told: Any, *words: str, state: str = "done") -> str:
    app = made_app(store)
    ended(app.app.state.site, told, *words, state=state)  # type: ignore[attr-defined]
    async with client_of(app) as client:
        answer = await client.get("/children/0123abcd", headers={"accept": "text/html"})
    assert answer.status_code == 200
    return unescape(answer.text)


async def test_a_comparison_says_which_sample_is_better_and_draws_it(own: Store) -> None:
    told = {"comparisons": [comparison("old.jsonl", "new.jsonl")], "unscored": 3, "page": None}
    page = await page_of(own, told, "compare", "old.jsonl", "new.jsonl", "--json")
    assert "new.jsonl is worse than old.jsonl" in page
    assert "About 40 % are good" in page.replace("\u202f", " ").replace("\xa0", " ")
    assert page.count("<svg") >= 3, "the shares, the axis, and the rubric's difference"
    assert "pollex compare old.jsonl new.jsonl" in page
    assert "--json" not in page.split("The same in a terminal")[1]


async def test_thumbs_of_both_logs_come_first_and_nothing_is_said_of_what_did_not_change(
    own: Store,
) -> None:
    compared = comparison("old.jsonl", "new.jsonl")
    for one in compared["rubrics"]:
        one["moved"] = False
    compared["watch"]["unlike"] = figure(0.0, 0.0, 0.1)
    compared["thumbs"] = [
        figure(0.5, 0.4, 0.6),
        figure(0.8, 0.7, 0.87),
    ]
    compared["thumb_difference"] = figure(0.3, 0.17, 0.42)
    told = {"comparisons": [compared], "unscored": 0, "page": None}
    page = await page_of(own, told, "compare", "old.jsonl", "new.jsonl", "--json")
    page = page.replace("\u202f", " ").replace("\xa0", " ")
    assert "new.jsonl is better than old.jsonl" in page, "users decide before scores do"
    assert page.index("80 % of the thumbs are up") < page.index("are good (")
    assert "No rubric moved clearly." in page
    assert "those come first" not in page
    assert "At least 0 %" not in page
    assert "labels a side at random" not in page


async def test_a_gate_that_is_shut_is_a_result_and_no_failure(own: Store) -> None:
    verdict = {"condition": "mean(p) drops by 0.03", "status": "failed", "message": "it does"}
    told = {"failed": True, "again": False, "strict": False, "unscored": 0, "mended": 0}
    told |= {"verdicts": [verdict | {"figure": figure(-0.2, -0.3, -0.1)}]}
    told |= {"comparison": comparison("old.jsonl", "new.jsonl"), "written": []}
    page = await page_of(own, told, "check", "new.jsonl", "--against=old.jsonl")
    assert "The gate is shut: it has become worse" in page
    assert "✕ failed" in page


async def test_an_evaluation_has_figures_with_intervals_and_says_what_the_set_has_seen(
    own: Store,
) -> None:
    page = await page_of(own, EVALUATION, "evaluate", "talks.jsonl")
    assert "ranks the good one higher 81" in page
    assert "0.700 to 0.900" in page
    assert "The set has seen 7" in page.replace("\u202f", " ").replace("\xa0", " ")
    assert "no thumb up" in page


async def test_a_log_that_was_brought_is_called_by_its_name_and_by_no_path(own: Store) -> None:
    app = made_app(own)
    site: Site = app.app.state.site  # type: ignore[attr-defined]
    async with client_of(app) as client:
        sent = {"files": ("talks.jsonl", b'{"messages": []}\n', "application/json")}
        log = (await client.post("/api/logs/files", files=sent)).json()["log"]
        (path,) = (own.folder / "logs" / log).glob("*.jsonl")
        told = {"comparisons": [comparison(str(path), "new")], "unscored": 0, "page": None}
        ended(site, told, "compare", "log:talks", "new")
        page = (await client.get("/children/0123abcd", headers={"accept": "text/html"})).text
    assert "new is worse than talks" in page
    assert str(path) not in page


async def test_a_command_that_failed_says_why_in_front_and_names_fields_by_their_labels(
    own: Store,
) -> None:
    app = made_app(own)
    child = ended(app.app.state.site, None, "compare", "a", state="failed")  # type: ignore[attr-defined]
    child.lines = ["480 conversations", "Error: one sample can't be compared → name a field: --by"]
    async with client_of(app) as client:
        page = (await client.get("/children/0123abcd", headers={"accept": "text/html"})).text
    alert = unescape(page).split('role="alert">')[1].split("<")[0]
    assert alert == "one sample can't be compared → name a field: “By”"


def test_a_result_outlives_its_server_and_a_made_up_one_is_left_alone(tmp_path: Path) -> None:
    commands = tmp_path / ".pollex" / "commands"
    children = Children(commands)
    record = children.folder / "0123abcd.json"
    child = Child("0123abcd", "Check", ("check", "a"), "/begin", record, state="done")
    child.seal = children.seal
    child.told = {"failed": False}
    child.clear_away()
    whole = json.loads((commands / "ended" / "0123abcd.json").read_bytes())
    for number, change in enumerate(
        ({"words": 1}, {"told": [1]}, {"back": "javascript:alert(1)"}, {"sealed": 5}, {"x": 1})
    ):
        (commands / "ended" / f"bad{number}.json").write_text(json.dumps(whole | change))
    (commands / "ended" / "deep.json").write_text("[" * 100_000)
    (commands / "folder.json").mkdir()
    later = Children(commands)
    later.find_again()
    again = later.find("0123abcd")
    assert again.state == "done"
    assert again.told == {"failed": False}
    assert again.arguments == ("check", "a")
    assert (commands / "ended" / "0123abcd.json").stat().st_mode & 0o077 == 0
    assert list(later.by_id) == ["0123abcd"]


async def test_a_drafted_profile_is_shown_as_a_draft_that_is_corrected_before_it_is_used(
    store: Store,
) -> None:
    profile = {
        "assistant": "the chat of a shop",
        "task": "to book",
        "user": "customers",
        "ideal_conversation": "It books.",
        "expectations": ["book", "say when it can't"],
        "notes": [],
        "language": "English",
    }
    told = {"profile": profile, "model": "m", "conversations": 12, "population": 480}
    page = await page_of(store, told, "domain", "draft", "a.jsonl")
    assert "m drafted this from 12 of 480" in page
    assert "book<br>say when it can't" in page
    assert "drafted=0123abcd" in page
    assert "What must a reader know" not in page, "nothing was drafted to it"
