"""`pollex score` and `pollex evaluate`: what they write, print and refuse."""

import csv
import glob
import json
import os
import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from small_log import row, small_log, write_log
from small_runs import Learnt, Pollex

from pollex.errors import StoreDamaged
from pollex.formats.csv_rows import escape_formula, unescape_formula
from pollex.formats.scores import scores_out
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score, ScoreColumns
from pollex.store.store import Store

FORMULA = '=HYPERLINK("http://evil.example","x")'


@pytest.fixture
def odd_log(tmp_path: Path) -> Path:
    """Scorable conversations under odd ids, and two that can't be scored."""
    turns = small_log()[0]["messages"]
    odd = [FORMULA, "  +1+1", "\t=1", "-2", "01", "1", "2024-01-01", "a\x00b\x1b[2J", "quote'\"; drop table"]
    rows = [{"id": id_, "messages": turns} for id_ in odd]
    rows += [row(1.5, ["Hi.", "Hello."]), row("empty", []), row("alone", ["Anybody?"])]
    return write_log(tmp_path / "odd.jsonl", rows)


def read_back(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of scores, with figures as numbers whatever the format."""
    if path.suffix == ".parquet":
        with duckdb.connect() as database:
            pattern = glob.escape(str(path))
            found = database.execute("SELECT * FROM read_parquet(?, hive_partitioning = false)", [pattern])
            names = [column[0] for column in found.description]
            return [dict(zip(names, values, strict=True)) for values in found.fetchall()]
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    with path.open(newline="", encoding="utf-8") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for one in rows:
        one |= {name: float(one[name]) if one[name] else None for name in ("netsat", "probability")}
        for name in ("confident", "guaranteed"):
            one[name] = {"True": True, "False": False, "": None}[one[name]]
        one |= {name: one[name] or None for name in ("label", "decision", "differs")}
    return rows


def test_all_formats_hold_the_same_scores_and_ids_stay_text(
    pollex: Pollex, tmp_path: Path, odd_log: Path, learnt: Learnt, store: Path
) -> None:
    found = {}
    for name in ("label=x/id=7/s [1]*'.parquet", "s [1]*.jsonl", "dir/s.csv"):
        ended = pollex("score", odd_log, "--rubrics", learnt.rubrics, "--out", name, "--store", store, "--json")
        assert ended.code == 3
        assert len(ended.out.splitlines()) == 1
        assert ended.last["outcomes"] == {"not_scorable": 2, "scored": 10}
        assert ended.last["judge"] == "built-in (no LLM)"
        assert "built-in (no LLM)" in ended.err
        found[Path(name).suffix] = read_back(tmp_path / name)
    plain = found[".jsonl"]
    for one in plain:
        for answer in one["answers"]:
            answer |= {name: answer.get(name) for name in ("option", "value", "probabilities", "source", "detail")}
            answer |= {name: answer.get(name) for name in ("justification", "turns")}
    assert found[".parquet"] == plain
    for one, guarded_one in zip(plain, found[".csv"], strict=True):
        assert guarded_one["id"].removeprefix("'") == one["id"]
        for name in ("netsat", "label", "confident", "probability", "outcome", "judge", "guaranteed"):
            assert guarded_one[name] == one[name]
    ids = [one["id"] for one in plain]
    assert ids[:9] == [json.loads(line)["id"] for line in odd_log.read_text().splitlines()[:9]]
    assert ids[9] == "1.5"
    assert [one["id"] for one in found[".csv"]][:5] == [f"'{FORMULA}", "'  +1+1", "'\t=1", "-2", "01"]
    assert not list(tmp_path.glob(".s*"))


def test_what_cannot_be_scored_has_an_outcome_and_no_figures(
    pollex: Pollex, tmp_path: Path, odd_log: Path, learnt: Learnt, store: Path
) -> None:
    pollex("score", odd_log, "--rubrics", learnt.rubrics, "--out", "s.jsonl", "--store", store)
    scored, *_, alone = read_back(tmp_path / "s.jsonl")
    assert {name: alone[name] for name in ("netsat", "label", "confident", "guaranteed", "probability", "outcome")} == {
        "netsat": None,
        "label": None,
        "confident": None,
        "guaranteed": None,
        "probability": None,
        "outcome": "not_scorable",
    }
    assert {answer["detail"] for answer in alone["answers"]} == {"no assistant turn"}
    values = [(1 if answer["polarity"] == "sat" else -1) * answer["value"] for answer in scored["answers"]]
    assert scored["netsat"] == sum(values)
    theta = json.loads(learnt.rubrics.read_text(encoding="utf-8"))["theta"]
    assert scored["label"] == ("positive" if scored["netsat"] > theta else "negative")
    assert 0 < scored["probability"] < 1


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=1+1", "'=1+1"),
        ("   =1", "'   =1"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\n\u00a0@SUM(A1)", "'\n\u00a0@SUM(A1)"),
        ("\x00-1+1", "'\x00-1+1"),
        ("＝1+1", "'＝1+1"),
        ("-2", "-2"),
        ("+2.5", "+2.5"),
        ("-2+3", "'-2+3"),
        (-2.0, -2.0),
        (None, None),
        ("plain - text", "plain - text"),
        ("'=1", "''=1"),
        ("''\t=1", "'''\t=1"),
        ("'-2", "'-2"),
        ("'plain'", "'plain'"),
        ("'", "'"),
    ],
)
def test_cells_that_a_spreadsheet_would_run_are_guarded_and_numbers_are_not(cell: object, written: object) -> None:
    assert escape_formula(cell) == written
    assert unescape_formula(written) == cell


@pytest.mark.parametrize("name", ["s.parquet", "s.jsonl", "s.csv"])
def test_scores_that_end_in_the_middle_leave_the_old_file_and_no_half_one(
    tmp_path: Path, learnt: Learnt, name: str
) -> None:
    some = [Score(conversation_id=str(n), outcome="refused") for n in range(1000)]
    out = tmp_path / name
    out.write_text("old")
    written = ExitStack()
    written.enter_context(scores_out(out, RubricSet.load(learnt.rubrics)))(ScoreColumns.of(some, []))
    with pytest.raises(StoreDamaged), written:
        raise StoreDamaged("the store can't be read")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert out.read_text() == "old"


@pytest.mark.nightly
def test_evaluate_on_what_was_held_out_repeats_what_no_label_of_it_decides_and_says_so_of_the_rest(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    half = pollex("learn", learnt.log, "--test-fraction", 0.5, "--out", "half.json", "--store", store, "--json")
    with Store.open(store, read_only=True) as kept:
        rows = kept.ask(half.last["run"], "SELECT id FROM conversations WHERE side = 'test'")
    held_out = {row["id"] for row in rows}
    log = write_log(tmp_path / "held-out.jsonl", [one for one in small_log() if one["id"] in held_out])
    ended = pollex("evaluate", log, "--rubrics", "half.json", "--store", store, "--json")
    assert ended.code == 0
    told, rubrics = ended.last, json.loads(Path("half.json").read_text(encoding="utf-8"))
    for name in ("auc", "delta_netsat"):
        assert told[name] == rubrics["held_out"][name]["value"]
    assert (told["n"], told["positives"], told["negatives"], told["learned_from"]) == (24, 12, 12, 0)
    assert told["theta"] == rubrics["theta"]
    assert told["window"] == [rubrics["window"]["lower"], rubrics["window"]["upper"]]
    assert "θ was fitted to 24 of these conversations: figures are too good" in ended.err
    seen = pollex("evaluate", learnt.log, "--rubrics", "half.json", "--store", store, "--json")
    assert seen.last["learned_from"] == 24
    assert "learned from 24 of these conversations" in seen.err


def with_guarantee(learnt: Learnt, path: Path, upper: float | None) -> Path:
    """The rubric set as if so narrow a window could be promised; None: as if it had been learnt without folds."""
    found = RubricSet.load(learnt.rubrics)
    assert found.guaranteed is not None
    side = replace(found.guaranteed.upper, threshold=upper)
    promised = None if upper is None else replace(found.guaranteed, upper=side)
    found.model_copy(update={"guaranteed": promised}).save(path)
    return path


@pytest.mark.nightly
def test_both_windows_are_told_for_each_score_and_measured_on_all(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    theta = json.loads(learnt.rubrics.read_text(encoding="utf-8"))["theta"]
    rubrics = with_guarantee(learnt, tmp_path / "promised.json", upper=theta + 1)
    pollex("score", learnt.log, "--rubrics", rubrics, "--out", "s.jsonl", "--store", store)
    rows = read_back(tmp_path / "s.jsonl")
    assert [one["guaranteed"] for one in rows] == [one["netsat"] > theta + 1 for one in rows]
    told = pollex("evaluate", learnt.log, "--rubrics", rubrics, "--store", store, "--json")
    found, ups = told.last["guaranteed_window"], {one["id"] for one in small_log() if one["thumbs"] == "up"}
    outside = [one["id"] in ups for one in rows if one["guaranteed"]]
    assert 0 < len(outside) < len(rows)
    assert (found["lower"], found["upper"]) == (None, theta + 1)
    assert (found["yield_rate"]["value"], found["yield_rate"]["n"]) == (len(outside) / len(rows), len(rows))
    assert (found["positive"]["value"], found["positive"]["n"]) == (sum(outside) / len(outside), len(outside))
    assert found["yield_rate"]["low"] < found["yield_rate"]["value"] < found["yield_rate"]["high"]
    assert found["negative"]["value"] is None
    assert found["negative"]["undefined"]
    assert f"positive over {theta + 1:.1f}: right" in told.err


@pytest.mark.nightly
def test_where_no_window_could_be_promised_nothing_is_said_of_one(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    rubrics = with_guarantee(learnt, tmp_path / "bare.json", upper=None)
    pollex("score", learnt.log, "--rubrics", rubrics, "--out", "s.parquet", "--store", store)
    assert {one["guaranteed"] for one in read_back(tmp_path / "s.parquet")} == {None}
    ended = pollex("evaluate", learnt.log, "--rubrics", rubrics, "--store", store, "--json")
    assert ended.last["guaranteed_window"] is None
    assert "guarantee" not in ended.err
    # One that was fitted and has no side promises nothing either, but that is a figure.
    fitted = pollex("evaluate", learnt.log, "--rubrics", learnt.rubrics, "--store", store, "--json")
    assert fitted.last["guaranteed_window"]["yield_rate"]["value"] == 0
    assert "nothing is outside the window" in fitted.err


@pytest.mark.nightly
def test_figures_of_one_class_are_undefined_with_a_reason_and_never_a_number(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    log = write_log(tmp_path / "up.jsonl", [one for one in small_log() if one["thumbs"] == "up"])
    plain = pollex("evaluate", log, "--rubrics", learnt.rubrics, "--store", store)
    told = pollex("evaluate", log, "--rubrics", learnt.rubrics, "--store", store, "--json").last
    assert (told["positives"], told["negatives"]) == (24, 0)
    for name in ("auc", "delta_netsat"):
        assert told[name] is None
        assert told["undefined"][name]
        assert name not in told["intervals"]
    assert "undefined" in plain.out
    assert not {"nan", "none", "null"} & set(plain.out.lower().split())


def test_conversations_that_all_score_the_same_have_no_nan_in_any_figure(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    turns = small_log()[0]["messages"]
    rows = [{"id": f"same{n}", "messages": turns, "thumbs": "up" if n % 2 else "down"} for n in range(24)]
    log = write_log(tmp_path / "same.jsonl", rows)
    told = pollex("evaluate", log, "--rubrics", learnt.rubrics, "--store", store, "--json").last
    assert told["auc"] == 0.5
    assert told["delta_netsat"] == 0
    plain = pollex("evaluate", log, "--rubrics", learnt.rubrics, "--store", store).out.lower().split()
    assert not {"nan", "none", "inf"} & set(plain)


def test_an_evaluation_without_scorable_conversations_says_so(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    empty = write_log(tmp_path / "empty.jsonl", [row("a", [], thumbs="up"), row("b", [], thumbs="down")])
    ended = pollex("evaluate", empty, "--rubrics", learnt.rubrics, "--store", store, "--json")
    assert ended.code == 3
    assert (ended.last["n"], ended.last["auc"], ended.last["outcomes"]) == (0, None, {"not_scorable": 2})


def test_names_of_files_that_are_no_text_are_written_to_where_that_can_be_and_refused_before_the_work_where_not(
    pollex: Pollex, learnt: Learnt, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    odd = os.fsdecode(b"caf\xe9")  # as Latin-1 has it
    shutil.copy(learnt.log, f"{odd}.jsonl")
    named = ("--rubrics", learnt.rubrics, "--store")
    assert pollex("score", f"{odd}.jsonl", "--out", f"{odd}.csv", *named, store).code == 0
    elsewhere = pollex("score", f"{odd}.jsonl", "--out", "s.csv", *named, odd)
    assert elsewhere.code == 2
    assert "caf\\udce9: its name is not valid UTF-8 → name another folder: --store" in elsewhere.err
    assert not [file for file in tmp_path.iterdir() if file.name in ("new", odd)]


def test_people_filter_by_the_decision_which_costs_move(pollex: Pollex, tmp_path: Path, learnt: Learnt) -> None:
    scoring = ("score", learnt.log, "--rubrics", learnt.rubrics, "--store", "s", "--out")
    assert pollex(*scoring, "even.jsonl").code == 0
    assert pollex(*scoring, "careful.jsonl", "--set", "costs=1000000:1").code == 0
    even, careful = (read_back(tmp_path / f"{name}.jsonl") for name in ("even", "careful"))
    assert all(one["decision"] == ("positive" if one["probability"] >= 0.5 else "negative") for one in even)
    assert {one["decision"] for one in careful} == {"negative"}
    assert all((one["decision"] == one["label"]) == (one["differs"] is None) for one in (*even, *careful))
