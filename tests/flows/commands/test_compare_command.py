"""`pollex compare`: which of two samples is better, and how sure that is."""

import asyncio
import json
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from rubric_set_by_hand import rubric_set
from small_log import small_log, write_log
from small_runs import Learnt, Pollex
from web_site import client_of, made_app

from pollex.conversations.conversation import Conversation, Turn
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.compare import ScoredArm, compare_unlabeled, keep_comparable
from pollex.store.resume import list_stored_runs
from pollex.store.store import Store


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two releases of 60 conversations, the second with twice as many good ones; 40 labels at random each."""
    rows = small_log(60, seed=5)
    good, bad = ([row for row in rows if row["thumbs"] == way] for way in ("up", "down"))
    made = [
        row | {"release": name, "user": row["id"]}
        for name, mine in {"1.0": good[:20] + bad[:40], "2.0": good[20:] + bad[40:]}.items()
        for row in mine
    ]
    for place, row in enumerate(made):
        row["messages"][0]["content"] += f" My number is {place}."
        row["drawn"] = "random" if place % 3 else ""
    return write_log(tmp_path / "logs.jsonl", made)


def test_a_better_release_is_seen_in_scores_rubrics_and_labels(
    pollex: Pollex, learnt: Learnt, store: Path, logs: Path
) -> None:
    page = Path("compare.html")
    arguments = (
        "compare",
        logs,
        "--by",
        "release",
        "--rubrics",
        learnt.rubrics,
        "--store",
        store,
        "--page",
        page,
    )
    ended = pollex(*arguments, "--json")
    assert ended.code == 0, ended.err
    (found,) = ended.last["comparisons"]
    assert (found["first"], found["second"], found["sizes"]) == ("1.0", "2.0", [60, 60])
    assert found["probability"]["low"] > 0
    assert found["labels"] == [40, 40]
    # 20 of 60 thumbs are up, and 40 of 60
    assert [round(share["value"], 3) for share in found["thumbs"]] == [0.333, 0.667]
    assert found["thumb_difference"]["value"] == pytest.approx(1 / 3)
    assert found["thumb_difference"]["low"] > 0
    assert not any("Labels at random on both sides" in note for note in found["notes"])
    shown = unescape(page.read_text(encoding="utf-8")).replace("\N{NO-BREAK SPACE}", " ")
    assert "Thumbs up: 33 % before" in shown
    assert "To see a difference of" not in shown, "thumbs measure it already"
    assert found["share"]["low"] < 1 / 3 < found["share"]["high"]
    assert found["plan"]["labels"] < found["plan"]["labels_alone"]
    signs = {"sat": 1, "dsat": -1}
    assert sum(signs[one["polarity"]] * one["difference"]["value"] for one in found["rubrics"]) > 0
    assert "better" in page.read_text(encoding="utf-8")
    turned = pollex(*arguments[:-2], "--baseline", "2.0", "--json").last["comparisons"][0]
    assert turned["probability"]["value"] == pytest.approx(-found["probability"]["value"])
    assert turned["probability"]["high"] < 0


def test_one_conversation_a_side_tells_no_size_by_scores(
    pollex: Pollex, learnt: Learnt, store: Path, logs: Path
) -> None:
    lines = logs.read_text(encoding="utf-8").splitlines()
    for name, line in {"a.jsonl": lines[0], "b.jsonl": lines[1]}.items():
        Path(name).write_text(line + "\n", encoding="utf-8")

    page = Path("one.html")
    ended = pollex(
        *("compare", "a.jsonl", "b.jsonl", "--rubrics", learnt.rubrics, "--store", store),
        *("--page", page),
    )
    assert ended.code == 0, ended.err
    assert "To see a difference" in ended.out
    for shown in (ended.out, page.read_text(encoding="utf-8")):
        assert "conversations a side" not in shown


def test_runs_are_compared_without_scoring_again_and_alike_in_the_browser(
    pollex: Pollex, learnt: Learnt, store: Path, logs: Path
) -> None:
    scored = (
        "--rubrics",
        learnt.rubrics,
        "--out",
        logs.with_name("s.jsonl"),
        "--store",
        store,
        "--json",
    )
    runs = [pollex("score", log, *scored).last["run"] for log in (learnt.log, logs)]
    ended = pollex("compare", *runs, "--rubrics", learnt.rubrics, "--store", store, "--json")
    assert ended.code == 0, ended.err
    (found,) = ended.last["comparisons"]
    assert found["sizes"] == [48, 120]
    assert found["thumbs"], "both logs have thumbs, so that nothing understates the difference"
    assert "understate" not in " ".join(found["notes"])
    assert {one["id"] for one in pollex("runs", "--store", store, "--json").last["runs"]} == set(
        runs
    )
    with Store.open(store) as opened:
        page = asyncio.run(browsed(opened, {"rubrics.json": RubricSet.load(learnt.rubrics)}, *runs))
    before, after = found["means"]
    assert f"{before:.3f} before, {after:.3f} after" in page
    assert found["rubrics"][0]["text"] in unescape(page)


async def browsed(
    store: Store, files: dict[str, RubricSet], a: str, b: str, place: str = "/compare"
) -> str:
    """The page of two runs."""
    async with client_of(made_app(store, files=files)) as client:
        return (await client.get(place, params={"a": a, "b": b})).text


def test_a_set_beside_itself_shows_nothing_whichever_run_answered(
    pollex: Pollex, store: Path
) -> None:
    log = write_log(Path("log.jsonl"), small_log(12))
    half = ("--test-fraction", "0.5", "--out", "half.json")
    assert pollex("learn", log, *half, "--store", store).code == 0
    arguments = ("--rubrics", "half.json", "--store", store)
    assert pollex("score", log, *arguments, "--out", "s.jsonl").code == 0
    learned = RubricSet.load("half.json").run
    held_out = RubricSet.load("half.json").data.held_out
    (found,) = pollex("compare", learned, "last", *arguments, "--json").last["comparisons"]
    assert found["sizes"] == [held_out, held_out]
    assert found["probability"]["value"] == found["netsat"]["value"] == 0
    assert not any(one["moved"] or one["difference"]["value"] for one in found["rubrics"])
    assert "conversations that the set was learned from" in found["notes"][0]
    with Store.open(store) as opened:
        told = json.loads(asyncio.run(browsed(opened, {}, learned, "last", "/api/compare")))
        page = asyncio.run(browsed(opened, {}, learned, "last"))
    assert (told["n"], told["flips"]) == (held_out, [])
    assert told["differences"]["NetSAT"]["value"] == pytest.approx(0)
    assert "that one of them was learned from are left out" in unescape(page)


def test_a_run_of_which_all_labels_teach_is_compared_and_checked_by_what_its_folds_say(
    learnt: Learnt, tmp_path: Path, pollex: Pollex
) -> None:
    store = shutil.copytree(learnt.store, tmp_path / "own")
    there = ("--rubrics", learnt.rubrics, "--store", store)
    assert pollex("score", learnt.log, *there, "--out", "s.jsonl").code == 0
    found = RubricSet.load(learnt.rubrics)
    (told,) = pollex("compare", found.run, "last", *there, "--json").last["comparisons"]
    assert min(told["sizes"]) > 0
    assert told["probability"]["value"] == pytest.approx(0)
    with Store.open(store) as opened:
        run = list_stored_runs(opened)[-1].id
        page = asyncio.run(browsed(opened, {"r.json": found}, found.run, run))
        assert "both sides show scores by rubrics chosen without them" in unescape(page)

        async def read(place: str, **asked: str) -> str:
            async with client_of(made_app(opened, files={"r.json": found})) as client:
                answer = await client.get(place, params=asked)
                assert answer.status_code == 200, answer.text
                return answer.text

        checked = asyncio.run(
            read("/check", run=run, against=found.run, what="mean(p) drops by", limit="0.03")
        )
        assert "passes" in checked
        for name in (found.run, run):
            page = asyncio.run(read("/calibration", run=name))
            assert "each scored by rubrics chosen without it" in page
            assert "0\xa0conversations" not in page


def test_what_only_one_of_two_runs_scored_is_in_neither_sample() -> None:
    told = [
        Conversation(id=str(n), turns=(Turn(role="user", content=f"Hello {n}"),)) for n in range(4)
    ]
    whole = ScoredArm(
        "all", told, np.linspace(0.2, 0.8, 4), np.linspace(-2, 2, 4), np.zeros((4, 1))
    )
    part = replace(
        whole.without(frozenset({told[3].text_hash})),
        name="part",
        unscored=frozenset({told[3].text_hash}),
    )
    first, second, notes = keep_comparable(part, whole)
    assert first.conversations == second.conversations == told[:3]
    assert notes[0].startswith(
        "left out are conversations without a score in the other, 0 of part and 1 of all"
    )


def arm(rng: np.random.Generator, *means: float) -> ScoredArm:
    values = np.array(means) + rng.normal(0, 0.01, (200, len(means)))
    return ScoredArm("of a test", [], rng.random(200), rng.normal(0, 1, 200), values)


def test_means_that_crowd_at_the_middle_move_a_rubrics_index_only_where_the_answer_moves() -> None:
    rng = np.random.default_rng(0)
    found = rubric_set()
    before = arm(rng, 4.9, 4.9)
    after = arm(rng, 4.8, 7.4)
    still, moved = (
        compare_unlabeled(before, after, found, rng).stability[one.id] for one in found.rubrics
    )
    assert (still.value, still.marked) == (0.0, False)
    assert moved.marked
    after.values[:, 1] = np.nan
    assert found.rubrics[1].id not in compare_unlabeled(before, after, found, rng).stability, (
        "no answer is no drift"
    )
