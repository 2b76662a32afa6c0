"""`pollex compare`: which of two samples is better, and how sure that is."""

import asyncio
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_log import small_log, write_log
from small_runs import Learnt, Pollex
from web_site import client_of, made_app

from pollex.conversations.conversation import Conversation, Turn
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.compare import Arm, comparable
from pollex.store.store import Store


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two releases of 60 conversations, the second with twice as many good ones; 40 labels at random each."""
    rows = small_log(60, seed=5)
    for place, row in enumerate(rows):
        row["messages"][0]["content"] += f" My number is {place}."
    good, bad = (iter([row for row in rows if row["thumbs"] == way]) for way in ("up", "down"))
    releases = {"1.0": [next(good) for _ in range(20)] + [next(bad) for _ in range(40)]}
    releases["2.0"] = [*good, *bad]
    made = [row | {"release": name, "user": row["id"]} for name, mine in releases.items() for row in mine]
    for place, row in enumerate(made):
        row["drawn"] = "random" if place % 3 else ""
    return write_log(tmp_path / "logs.jsonl", made)


def test_a_better_release_is_seen_in_scores_rubrics_and_labels(
    pollex: Pollex, learnt: Learnt, store: Path, logs: Path, tmp_path: Path
) -> None:
    page = tmp_path / "compare.html"
    arguments = ("compare", logs, "--by", "release", "--rubrics", learnt.rubrics, "--store", store, "--page", page)
    ended = pollex(*arguments, "--json")
    assert ended.code == 0, ended.err
    (found,) = ended.last["comparisons"]
    assert (found["first"], found["second"], found["sizes"]) == ("1.0", "2.0", [60, 60])
    assert found["probability"]["low"] > 0
    assert found["labels"] == [40, 40]
    assert found["share"]["low"] < 1 / 3 < found["share"]["high"]
    assert found["plan"]["labels"] < found["plan"]["labels_alone"]
    signs = {"sat": 1, "dsat": -1}
    assert sum(signs[one["polarity"]] * one["difference"]["value"] for one in found["rubrics"]) > 0
    assert "better" in page.read_text(encoding="utf-8")
    turned = pollex(*arguments[:-2], "--baseline", "2.0", "--json").last["comparisons"][0]
    assert turned["probability"]["value"] == pytest.approx(-found["probability"]["value"])
    assert turned["probability"]["high"] < 0


def test_a_file_compared_with_itself_is_paired_and_shows_nothing(
    pollex: Pollex, learnt: Learnt, store: Path, logs: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.jsonl"
    copy.write_text(logs.read_text())
    ended = pollex("compare", logs, copy, "--rubrics", learnt.rubrics, "--store", store, "--json")
    (found,) = ended.last["comparisons"]
    assert found["paired"] == 120
    assert found["probability"]["value"] == found["probability"]["low"] == 0
    assert not any(one["moved"] for one in found["rubrics"])


def test_runs_are_compared_without_scoring_again_and_alike_in_the_browser(
    pollex: Pollex, learnt: Learnt, store: Path, logs: Path
) -> None:
    scored = ("--rubrics", learnt.rubrics, "--out", logs.with_name("s.jsonl"), "--store", store, "--json")
    runs = [pollex("score", log, *scored).last["run"] for log in (learnt.log, logs)]
    ended = pollex("compare", *runs, "--rubrics", learnt.rubrics, "--store", store, "--json")
    assert ended.code == 0, ended.err
    (found,) = ended.last["comparisons"]
    assert found["sizes"] == [48, 120]
    assert "understate" in " ".join(found["notes"])
    assert {one["id"] for one in pollex("runs", "--store", store, "--json").last["runs"]} == set(runs)
    with Store.open(store) as opened:
        page = asyncio.run(browsed(opened, RubricSet.load(learnt.rubrics), *runs))
    before, after = found["means"]
    assert f"{before:.3f} before, {after:.3f} after" in page
    assert found["rubrics"][0]["text"] in unescape(page)


async def browsed(store: Store, rubrics: RubricSet, a: str, b: str) -> str:
    """The page of two runs."""
    async with client_of(made_app(store, files={"rubrics.json": rubrics})) as client:
        return (await client.get("/compare", params={"a": a, "b": b})).text


def test_a_set_beside_itself_shows_nothing_whichever_run_answered(
    pollex: Pollex, learnt: Learnt, tmp_path: Path
) -> None:
    store = tmp_path / "copied"
    shutil.copytree(learnt.store, store)
    half = ("--test-fraction", "0.5", "--out", "half.json")
    assert pollex("learn", learnt.log, *half, "--store", store).code == 0
    assert pollex("score", learnt.log, "--rubrics", "half.json", "--store", store, "--out", "s.jsonl").code == 0
    arguments = ("--rubrics", "half.json", "--store", store, "--json")
    learned = RubricSet.load("half.json").run
    (found,) = pollex("compare", learned, "last", *arguments).last["comparisons"]
    held_out = RubricSet.load("half.json").data.held_out
    assert found["sizes"] == [held_out, held_out]
    assert found["probability"]["value"] == found["netsat"]["value"] == 0
    assert not any(one["moved"] or one["difference"]["value"] for one in found["rubrics"])
    assert "conversations that the set was learned from" in found["notes"][0]

    async def looked() -> tuple[dict[str, Any], str]:
        with Store.open(store) as opened:
            async with client_of(made_app(opened)) as client:
                runs = {"a": learned, "b": "last"}
                told = (await client.get("/api/compare", params=runs)).json()
                return told, (await client.get("/compare", params=runs)).text

    told, page = asyncio.run(looked())
    assert (told["n"], told["flips"]) == (held_out, [])
    assert told["differences"]["NetSAT"]["value"] == pytest.approx(0)
    assert "that one of them was learned from are left out" in unescape(page)


def test_what_only_one_of_two_runs_scored_is_in_neither_sample() -> None:
    told = [Conversation(id=str(n), turns=(Turn(role="user", content=f"Hello {n}"),)) for n in range(4)]
    whole = Arm("all", told, np.linspace(0.2, 0.8, 4), np.linspace(-2, 2, 4), np.zeros((4, 1)))
    part = replace(whole.without(frozenset({told[3].text_hash})), name="part", unscored=frozenset({told[3].text_hash}))
    first, second, notes = comparable(part, whole)
    assert first.conversations == second.conversations == told[:3]
    assert notes[0].startswith("left out are conversations without a score in the other, 0 of part and 1 of all")
