"""Rubrics that a person edited: refused by `score`, fitted again by `refit`, or too broken to be read."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_log import small_log, write_log
from small_runs import Learnt, Pollex, run_here

from pollex.errors import BadRubrics
from pollex.rubrics.edits import read_rubrics
from pollex.rubrics.rubric_set import RubricSet
from pollex.store.resume import read_facts_by_id
from pollex.store.store import Store

Edit = Callable[[dict[str, Any]], object]


def other_log() -> list[dict[str, Any]]:
    """Conversations none of which is in the small log."""
    known = {str(one["messages"]) for one in small_log()}
    others = [one for one in small_log(each=60, seed=1) if str(one["messages"]) not in known]
    return [
        one
        for thumb in ("up", "down")
        for one in [row for row in others if row["thumbs"] == thumb][:24]
    ]


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Learnt:
    """A set that half of the log taught: the other half is what a refit measures."""
    folder = tmp_path_factory.mktemp("half")
    log = write_log(folder / "log.jsonl", small_log())
    rubrics = folder / "rubrics.json"
    store = folder / "store"
    half = ("--test-fraction", 0.5)
    return Learnt(
        log,
        rubrics,
        store,
        run_here("learn", log, "--out", rubrics, "--store", store, "--json", *half),
    )


@pytest.fixture(scope="module")
def elsewhere(learnt: Learnt, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Other conversations, and the set fitted to them."""
    folder = tmp_path_factory.mktemp("elsewhere")
    others = write_log(folder / "others.jsonl", other_log())
    given = (
        "--rubrics",
        learnt.rubrics,
        "--out",
        folder / "fitted.json",
        "--store",
        folder / "store",
    )
    assert run_here("refit", others, *given).code == 0
    return others, folder / "fitted.json"


def test_a_set_that_all_labels_taught_has_no_figures_on_them_after_a_refit_and_half_of_others(
    pollex: Pollex, elsewhere: tuple[Path, Path], learnt: Learnt, store: Path
) -> None:
    assert pollex("learn", learnt.log, "--out", "all.json", "--store", store).code == 0
    assert (
        pollex(
            "refit", learnt.log, "--rubrics", "all.json", "--out", "same.json", "--store", store
        ).code
        == 0
    )
    assert RubricSet.load("same.json").held_out is None
    assert (
        pollex(
            "refit", elsewhere[0], "--rubrics", "all.json", "--out", "others.json", "--store", store
        ).code
        == 0
    )
    measured = RubricSet.load("others.json")
    assert measured.held_out
    assert measured.held_out.n == measured.data.training


def standings(path: str | Path) -> dict[str, str]:
    """Each rubric's standing, by its words."""
    return {rubric.text: rubric.stands for rubric in RubricSet.load(path, arrays=False).rubrics}


@pytest.mark.parametrize("shuffled", [pytest.param(False, marks=pytest.mark.nightly), True])
@pytest.mark.nightly
def test_a_refit_on_the_labels_that_taught_proves_nothing_more(
    pollex: Pollex, tmp_path: Path, shuffled: bool
) -> None:
    rows = small_log(60)
    thumbs = random.Random(1).sample(["up", "down"] * 60, 120)
    write_log(
        tmp_path / "log.jsonl",
        [one | {"thumbs": t} for one, t in zip(rows, thumbs, strict=True)] if shuffled else rows,
    )
    assert pollex("learn", "log.jsonl", "--out", "learnt.json").code == 0
    assert pollex("refit", "log.jsonl", "--rubrics", "learnt.json", "--out", "same.json").code == 0
    before = standings("learnt.json")
    assert standings("same.json") == before
    assert ("proven" in before.values()) != shuffled
    given = json.loads(Path("learnt.json").read_text(encoding="utf-8"))
    reworded = given["rubrics"][0]
    # a detector decides it, whatever its words
    new = {"Other words.": before[reworded["text"]], "The user tells a story.": "hint"}
    reworded["text"] = "Other words."
    given["rubrics"].append({"text": "The user tells a story.", "polarity": "sat"})
    Path("learnt.json").write_text(json.dumps(given), encoding="utf-8")
    Path("learnt.rubrics.toml").unlink()
    assert pollex("refit", "log.jsonl", "--rubrics", "learnt.json", "--out", "other.json").code == 0
    assert (
        standings("other.json")
        == {text: now for text, now in before.items() if text in standings("other.json")} | new
    )


def edited(learnt: Learnt, path: Path, edit: Edit) -> Path:
    """A copy of the rubric set, changed as by hand."""
    rubrics = json.loads(learnt.rubrics.read_text(encoding="utf-8"))
    edit(rubrics)
    path.write_text(json.dumps(rubrics, ensure_ascii=False, indent=1), encoding="utf-8")
    return path


def change(rubrics: dict[str, Any]) -> None:
    """Rewords one, removes one, turns one round, and adds one."""
    first, _, third, *_ = rubrics["rubrics"]
    first["text"] = "The user says that the matter is settled."
    third["polarity"] = {"sat": "dsat", "dsat": "sat"}[third["polarity"]]
    del rubrics["rubrics"][1]
    rubrics["rubrics"].append({"text": "The user sounds relieved.", "polarity": "sat"})


def remove_one_kind(rubrics: dict[str, Any]) -> None:
    rubrics["rubrics"] = [one for one in rubrics["rubrics"] if one["polarity"] == "sat"]


@pytest.mark.parametrize("edit", [change, remove_one_kind])
def test_an_edited_set_scores_only_after_a_refit(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path, edit: Edit
) -> None:
    rubrics = edited(learnt, tmp_path / "rubrics.json", edit)
    wanted = [
        (one["text"], one["polarity"])
        for one in json.loads(rubrics.read_text(encoding="utf-8"))["rubrics"]
    ]
    for verb in ("score", "evaluate"):
        refused = pollex(verb, learnt.log, "--rubrics", rubrics, "--store", store)
        assert refused.code == 1
        assert "edited after θ was fitted" in refused.err
        assert "pollex refit" in refused.err
    ended = pollex("refit", "-v", learnt.log, "--rubrics", rubrics, "--store", store)
    assert ended.code == 0, ended.err
    assert "built-in (no LLM)" in ended.out
    refitted = json.loads(rubrics.read_text(encoding="utf-8"))
    assert sorted((one["text"], one["polarity"]) for one in refitted["rubrics"]) == sorted(wanted)
    assert set(refitted["judge"]["learned"]) <= {one["id"] for one in refitted["rubrics"]}
    assert refitted["held_out"]["n"] == 24
    assert (
        pollex("score", learnt.log, "--rubrics", rubrics, "--store", store, "--out", "s.jsonl").code
        == 0
    )


def test_a_refit_of_what_nobody_edited_changes_no_figure(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    ended = pollex(
        "refit",
        "-v",
        learnt.log,
        "--rubrics",
        learnt.rubrics,
        "--out",
        "again.json",
        "--store",
        store,
    )
    assert ended.code == 0
    assert "of halves" not in ended.out  # how often a rubric is chosen again was not measured
    before, after = (
        json.loads(p.read_text(encoding="utf-8")) for p in (learnt.rubrics, tmp_path / "again.json")
    )
    assert {one["id"] for one in after["rubrics"]} == {one["id"] for one in before["rubrics"]}
    assert after["data"]["training_hashes"] == before["data"]["training_hashes"]
    assert after["theta"] == pytest.approx(before["theta"], abs=1e-9)
    assert after["held_out"]["auc"]["value"] == pytest.approx(
        before["held_out"]["auc"]["value"], abs=1e-12
    )
    assert not any("too good" in note for note in after["notes"])
    written = RubricSet.load("again.json", arrays=False)
    with Store.open(store, read_only=True) as kept:
        assert (
            RubricSet.parse(
                read_facts_by_id(kept, written.run, "rubric_set")[written.rubrics_digest]
            )
            == written
        )
    assert written.reasons


def test_a_window_is_guaranteed_only_by_conversations_that_the_rubrics_were_not_learnt_from(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path, elsewhere: tuple[Path, Path]
) -> None:
    chosen = RubricSet.load(learnt.rubrics)
    assert chosen.calibrator is not None
    other = chosen.calibrator.model_copy(update={"chosen": "decorrelated NetSAT"})
    chosen.model_copy(update={"calibrator": other}).save(tmp_path / "other.json")
    same = pollex(
        "refit", "-v", learnt.log, "--rubrics", "other.json", "--out", "same.json", "--store", store
    )
    assert (
        "no window with a guarantee: the rubrics were learnt from 24 of the conversations"
        in same.out
    )
    flattered = RubricSet.load("same.json")
    assert (flattered.guaranteed, flattered.alphas) == (None, ())
    assert "cross-validated" not in same.out
    assert "training, cross-fitted" not in same.out
    assert flattered.calibrator is not None
    assert (flattered.calibrator.training, flattered.calibrator.compared) == (None, ())
    # whatever the set had: nobody asked for another
    assert flattered.calibrator.chosen == "calibration network"
    assert flattered.calibrator.held_out is not None
    fitted = RubricSet.load(elsewhere[1])
    assert fitted.guaranteed is not None
    assert fitted.guaranteed.n == 48
    assert fitted.calibrator is not None
    assert fitted.calibrator.training is not None
    assert fitted.calibrator.training.n == 24


def test_a_window_that_was_moved_across_theta_is_refused_until_it_is_fitted_again(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    kept = RubricSet.load(learnt.rubrics)
    rubrics = tmp_path / "rubrics.json"
    for place, end in (("lower", 1.0), ("upper", -1.0)):
        moved = replace(kept.window, **{place: kept.theta + end})
        kept.model_copy(update={"window": moved}).save(rubrics)
        refused = pollex("score", learnt.log, "--rubrics", rubrics, "--store", store)
        assert (refused.code, f"window.{place} is" in refused.err) == (1, True)
        assert "on the other side of θ" in refused.err
    assert pollex("refit", "-v", learnt.log, "--rubrics", rubrics, "--store", store).code == 0
    assert (
        pollex("score", learnt.log, "--rubrics", rubrics, "--store", store, "--out", "s.jsonl").code
        == 0
    )


def test_a_set_that_an_editor_saved_with_a_mark_of_byte_order_is_read_and_one_in_another_encoding_is_not(
    learnt: Learnt, tmp_path: Path
) -> None:
    copied = tmp_path / "r.json"
    text = learnt.rubrics.read_text("utf-8")
    copied.write_text(text, encoding="utf-8-sig")
    assert RubricSet.load(copied, arrays=False) == RubricSet.load(learnt.rubrics, arrays=False)
    copied.write_text(text, encoding="utf-16")
    with pytest.raises(
        BadRubrics, match=r"can't be read: .* → check the path; the file is to be UTF-8"
    ):
        RubricSet.load(copied)


def test_a_rubric_without_words_is_not_fitted(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    def blank(rubrics: dict[str, Any]) -> None:
        rubrics["rubrics"].append({"text": " \n", "polarity": "sat"})

    refused = pollex(
        "refit",
        "-v",
        learnt.log,
        "--rubrics",
        edited(learnt, tmp_path / "r.json", blank),
        "--store",
        store,
    )
    assert (refused.code, "has no words → write its text" in refused.err) == (1, True)


def test_a_refit_keeps_the_split_of_learn_and_warns_when_told_to_take_another(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    pollex("learn", learnt.log, "--seed", 5, "--test-fraction", 0.4, "--store", store)
    first = json.loads((tmp_path / "rubrics.json").read_text(encoding="utf-8"))
    kept = pollex(
        "refit",
        "-v",
        learnt.log,
        "--rubrics",
        "rubrics.json",
        "--out",
        "kept.json",
        "--store",
        store,
    )
    assert "too good" not in kept.out
    data = json.loads((tmp_path / "kept.json").read_text(encoding="utf-8"))["data"]
    assert {
        name: data[name] for name in ("seed", "test_fraction", "training", "training_hashes")
    } == {
        name: first["data"][name]
        for name in ("seed", "test_fraction", "training", "training_hashes")
    }
    other = pollex(
        "refit",
        "-v",
        learnt.log,
        "--rubrics",
        "rubrics.json",
        "--out",
        "o.json",
        "--seed",
        6,
        "--store",
        store,
    )
    assert "of the held-out conversations: their figures are too good" in other.out
    data = json.loads((tmp_path / "o.json").read_text(encoding="utf-8"))["data"]
    assert data["training_hashes"] == first["data"]["training_hashes"]
    assert data["fitted_hashes"]
    assert not set(data["fitted_hashes"]) & set(data["training_hashes"])


def test_a_window_is_guaranteed_again_by_conversations_that_the_rubrics_were_only_fitted_to(
    pollex: Pollex, elsewhere: tuple[Path, Path], learnt: Learnt, store: Path
) -> None:
    others, fitted = elsewhere
    pollex("refit", "-v", others, "--rubrics", fitted, "--out", "twice.json", "--store", store)
    once = RubricSet.load(fitted)
    twice = RubricSet.load("twice.json")
    assert twice.guaranteed is not None
    assert twice.guaranteed == once.guaranteed
    assert twice.data == once.data
    assert once.learned_from == RubricSet.load(learnt.rubrics).learned_from
    back = pollex(
        "refit", "-v", learnt.log, "--rubrics", "twice.json", "--out", "back.json", "--store", store
    )
    assert (
        "no window with a guarantee: the rubrics were learnt from 24 of the conversations"
        in back.out
    )
    back_again = RubricSet.load("back.json")
    assert len(back_again.only_fitted_to) == back_again.data.held_out == 24


def test_figures_on_conversations_that_only_theta_was_fitted_to_are_said_to_be_too_good(
    pollex: Pollex, elsewhere: tuple[Path, Path], learnt: Learnt, store: Path
) -> None:
    others, fitted = elsewhere
    seen = pollex("evaluate", others, "--rubrics", fitted, "--store", store, "--json")
    assert (seen.last["learned_from"], seen.last["fitted_to"]) == (0, 48)
    assert "θ was fitted to 48 of these conversations: figures are too good" in seen.err
    assert "learnt from" not in seen.err
    first = pollex("evaluate", learnt.log, "--rubrics", fitted, "--store", store, "--json")
    assert first.last["learned_from"] == 24
    assert "learned from 24 of these conversations" in first.err


def test_a_refit_on_too_few_conversations_asks_nobody_and_leaves_the_set_alone(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    rubrics = edited(learnt, tmp_path / "rubrics.json", change)
    before = rubrics.read_bytes()
    few = write_log(tmp_path / "few.jsonl", small_log(4))
    nobody = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    for more in ((), nobody, (*nobody, "--dry-run")):
        ended = pollex("refit", "-v", few, "--rubrics", rubrics, "--store", store, *more)
        assert (ended.code, "fewer than 10 conversations of a class" in ended.err) == (1, True)
    assert rubrics.read_bytes() == before


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda text: text.replace('"theta":', '"theta"', 1),
            "rubrics.json:{line}: not valid JSON",
        ),
        (lambda text: text.replace('"polarity": "sat"', '"polarity": "good"', 1), "polarity"),
        (lambda text: text.replace('"rubrics": [', '"rubricks": [', 1), "rubric"),
        (lambda text: text[: len(text) // 2], "not valid JSON"),
        (lambda text: text.replace('"format": 2', '"format": 99', 1), "format 99"),
        (lambda text: "[" * 100_000, "rubrics.json"),
        (lambda text: "", "not valid JSON"),
    ],
    ids=[
        "comma",
        "polarity",
        "field",
        "half",
        "newer",
        "deep",
        "empty",
    ],
)
def test_a_set_that_was_broken_by_hand_is_refused_with_the_place(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, edit: Callable[[str], str], message: str
) -> None:
    broken = tmp_path / "rubrics.json"
    text = learnt.rubrics.read_text(encoding="utf-8")
    broken.write_text(edit(text), encoding="utf-8")
    line = next(n for n, one in enumerate(text.splitlines(), start=1) if '"theta":' in one)
    for verb in ("score", "refit"):
        ended = pollex(verb, learnt.log, "--rubrics", broken, "--store", tmp_path / "none")
        assert ended.code == 1
        assert message.format(line=line) in ended.err
        assert str(broken) in ended.err
        assert " → " in ended.err
        assert "unexpected" not in ended.err
    assert not (tmp_path / "none").exists()


@pytest.mark.nightly
def test_rubrics_written_by_hand_are_fitted_by_the_embedded_judge(
    learnt: Learnt, store: Path, pollex: Pollex
) -> None:
    ended = pollex("learn", learnt.log, "--rubrics-from", "generic", "--store", store, "--json")
    assert ended.code == 0, ended.err
    fitted = RubricSet.load("rubrics.json")
    assert {rubric.text for rubric in fitted.rubrics} == {
        rubric.text for rubric in read_rubrics("generic")
    }
    assert fitted.held_out is not None
    assert fitted.held_out.n > 0
    assert fitted.reasons == ()
    assert not fitted.learned_from
    assert len(fitted.only_fitted_to) == fitted.data.training + fitted.data.held_out
    again = pollex("learn", learnt.log, "--rubrics-from", "generic", "--store", store, "--resume")
    assert again.code == 0, again.err
    pollex("refit", "-v", learnt.log, "--rubrics", "rubrics.json", "--store", store)
    # what was written by hand was chosen on no labels
    assert RubricSet.load("rubrics.json").guaranteed is not None


@pytest.mark.nightly
def test_the_report_of_another_set_in_the_folder_stays(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    def learns(name: str) -> str:
        given = ("--rubrics-from", "generic", "--test-fraction", 0, "--store", store)
        return str(pollex("learn", learnt.log, *given, "--out", name, "--json").last["report"])

    assert learns("a.json") == "report.html"
    written = Path("report.html").read_bytes()
    assert learns("b.json") == "b-report.html"
    assert Path("report.html").read_bytes() == written
    refitted = pollex("refit", learnt.log, "--rubrics", "b.json", "--store", store, "--json")
    assert refitted.last["report"] == "b-report.html"
    Path("a.json").unlink()
    assert learns("b.json") == "report.html"
