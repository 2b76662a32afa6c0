"""`pollex score` and `pollex evaluate`: what they write, print and refuse."""

import asyncio
import csv
import glob
import hashlib
import json
import math
import os
import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from httpx2 import Response
from known_judges import with_judges
from small_log import Ended, read_rows, row, small_log, write_log
from small_runs import Learnt, Pollex
from web_site import client_of, made_app

from pollex.errors import StoreDamaged
from pollex.formats.csv_rows import escape_formula, unescape_formula
from pollex.formats.scores import make_rubric_column_name, open_score_file
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score, ScoreColumns
from pollex.store.resume import iterate_conversations
from pollex.store.store import Store

FORMULA = '=HYPERLINK("http://evil.example","x")'


@pytest.fixture
def odd_log(tmp_path: Path) -> Path:
    """Scorable conversations under odd ids, and two that can't be scored."""
    turns = small_log()[0]["messages"]
    odd = [
        FORMULA,
        "  +1+1",
        "\t=1",
        "-2",
        "01",
        "1",
        "2024-01-01",
        "a\x00b\x1b[2J",
        "quote'\"; drop table",
    ]
    rows = [{"id": id_, "messages": turns} for id_ in odd]
    rows += [row(1.5, ["Hi.", "Hello."]), row("empty", []), row("alone", ["Anybody?"])]
    return write_log(tmp_path / "odd.jsonl", rows)


def read_back(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of scores, with figures as numbers whatever the format."""
    if path.suffix == ".parquet":
        with duckdb.connect() as database:
            pattern = glob.escape(str(path))
            found = database.execute(
                "SELECT * FROM read_parquet(?, hive_partitioning = false)", [pattern]
            )
            names = [column[0] for column in found.description]
            return [dict(zip(names, values, strict=True)) for values in found.fetchall()]
    if path.suffix == ".jsonl":
        return read_rows(path)
    with path.open(newline="", encoding="utf-8") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for one in rows:
        one |= {name: float(one[name]) if one[name] else None for name in ("netsat", "probability")}
        for name in ("confident", "guaranteed"):
            one[name] = {"True": True, "False": False, "": None}[one[name]]
        one |= {name: one[name] or None for name in ("label", "decision", "differs")}
    return rows


def test_all_formats_hold_the_same_scores_ids_stay_text_and_what_cannot_be_scored_has_no_figures(
    pollex: Pollex, tmp_path: Path, odd_log: Path, learnt: Learnt, store: Path
) -> None:
    found = {}
    for name in ("label=x/id=7/s [1]*'.parquet", "s [1]*.jsonl", "dir/s.csv"):
        ended = pollex(
            "score", odd_log, "--rubrics", learnt.rubrics, "--out", name, "--store", store, "--json"
        )
        assert ended.code == 3
        assert len(ended.out.splitlines()) == 1
        assert ended.last["outcomes"] == {"not_scorable": 2, "scored": 10}
        assert ended.last["judge"] == "built-in (no LLM)"
        assert "built-in (no LLM)" in ended.err
        found[Path(name).suffix] = read_back(tmp_path / name)
    plain = found[".jsonl"]
    for one in plain:
        for answer in one["answers"]:
            answer |= {
                name: answer.get(name)
                for name in ("option", "value", "probabilities", "source", "detail")
            }
            answer |= {name: answer.get(name) for name in ("justification", "turns")}
    assert found[".parquet"] == plain
    for one, guarded_one in zip(plain, found[".csv"], strict=True):
        assert guarded_one["id"].removeprefix("'") == one["id"]
        for name in (
            "netsat",
            "label",
            "confident",
            "probability",
            "outcome",
            "judge",
            "guaranteed",
        ):
            assert guarded_one[name] == one[name]
    ids = [one["id"] for one in plain]
    assert ids[:9] == [json.loads(line)["id"] for line in odd_log.read_text().splitlines()[:9]]
    assert ids[9] == "1.5"
    assert [one["id"] for one in found[".csv"]][:5] == [
        f"'{FORMULA}",
        "'  +1+1",
        "'\t=1",
        "-2",
        "01",
    ]
    assert not list(Path().glob(".s*"))
    scored, *_, alone = plain
    figures = ("netsat", "label", "confident", "guaranteed", "probability")
    assert (alone["outcome"], {alone[name] for name in figures}) == ("not_scorable", {None})
    assert {answer["detail"] for answer in alone["answers"]} == {"no assistant turn"}
    values = [
        (1 if answer["polarity"] == "sat" else -1) * answer["value"] for answer in scored["answers"]
    ]
    assert scored["netsat"] == sum(values)
    assert scored["label"] == (
        "positive" if scored["netsat"] > RubricSet.load(learnt.rubrics).theta else "negative"
    )
    assert 0 < scored["probability"] < 1


def test_cells_that_a_spreadsheet_would_run_are_guarded_and_numbers_are_not() -> None:
    guarded = (
        "=1+1",
        "   =1",
        "\t=1",
        "\r=1",
        "\n\u00a0@SUM(A1)",
        "\x00-1+1",
        "＝1+1",
        "-2+3",
        "'=1",
        "''\t=1",
    )
    for cell in guarded:
        assert (escape_formula(cell), unescape_formula(f"'{cell}")) == (f"'{cell}", cell)
    for cell in ("-2", "+2.5", -2.0, None, "plain - text", "'-2", "'plain'", "'"):
        assert escape_formula(cell) == unescape_formula(cell) == cell


def test_scores_that_end_in_the_middle_leave_the_old_file_and_no_half_one(
    tmp_path: Path, learnt: Learnt
) -> None:
    some = [Score(conversation_id=str(n), outcome="refused") for n in range(1000)]
    for name in ("s.parquet", "s.jsonl", "s.csv"):
        (tmp_path / name).write_text("old")
        written = ExitStack()
        written.enter_context(open_score_file(tmp_path / name, RubricSet.load(learnt.rubrics)))(
            ScoreColumns.of(some, [])
        )
        with pytest.raises(StoreDamaged), written:
            raise StoreDamaged("the store can't be read")
        assert (tmp_path / name).read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.nightly
def test_evaluate_on_what_was_held_out_repeats_what_no_label_of_it_decides_and_says_so_of_the_rest(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    half = pollex(
        "learn",
        learnt.log,
        "--test-fraction",
        0.5,
        "--out",
        "half.json",
        "--store",
        store,
        "--json",
    )
    with Store.open(store, read_only=True) as kept:
        rows = kept.ask(half.last["run"], "SELECT id FROM conversations WHERE side = 'test'")
    held_out = {row["id"] for row in rows}
    log = write_log(Path("held-out.jsonl"), [one for one in small_log() if one["id"] in held_out])
    ended = pollex("evaluate", log, "--rubrics", "half.json", "--store", store, "--json")
    assert ended.code == 0
    told = ended.last
    rubrics = json.loads(Path("half.json").read_text(encoding="utf-8"))
    for name in ("auc", "delta_netsat"):
        assert told[name] == rubrics["held_out"][name]["value"]
    assert (told["n"], told["positives"], told["negatives"], told["learned_from"]) == (
        24,
        12,
        12,
        0,
    )
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
def test_both_windows_are_told_for_each_score_and_measured_on_all_and_none_where_none_could_be_promised(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    theta = RubricSet.load(learnt.rubrics).theta
    rubrics = with_guarantee(learnt, Path("promised.json"), upper=theta + 1)
    pollex("score", learnt.log, "--rubrics", rubrics, "--out", "s.jsonl", "--store", store)
    rows = read_back(Path("s.jsonl"))
    assert [one["guaranteed"] for one in rows] == [one["netsat"] > theta + 1 for one in rows]
    told = pollex("evaluate", learnt.log, "--rubrics", rubrics, "--store", store, "--json")
    found = told.last["guaranteed_window"]
    ups = {one["id"] for one in small_log() if one["thumbs"] == "up"}
    outside = [one["id"] in ups for one in rows if one["guaranteed"]]
    assert 0 < len(outside) < len(rows)
    assert (found["lower"], found["upper"]) == (None, theta + 1)
    assert (found["yield_rate"]["value"], found["yield_rate"]["n"]) == (
        len(outside) / len(rows),
        len(rows),
    )
    assert (found["positive"]["value"], found["positive"]["n"]) == (
        sum(outside) / len(outside),
        len(outside),
    )
    assert found["yield_rate"]["low"] < found["yield_rate"]["value"] < found["yield_rate"]["high"]
    assert found["negative"]["value"] is None
    assert found["negative"]["undefined"]
    assert f"positive over {theta + 1:.1f}: right" in told.err
    bare = with_guarantee(learnt, Path("bare.json"), upper=None)
    pollex("score", learnt.log, "--rubrics", bare, "--out", "s.parquet", "--store", store)
    assert {one["guaranteed"] for one in read_back(Path("s.parquet"))} == {None}
    ended = pollex("evaluate", learnt.log, "--rubrics", bare, "--store", store, "--json")
    assert ended.last["guaranteed_window"] is None
    assert "guarantee" not in ended.err
    # One that was fitted and has no side promises nothing either, but that is a figure.
    fitted = pollex("evaluate", learnt.log, "--rubrics", learnt.rubrics, "--store", store, "--json")
    assert fitted.last["guaranteed_window"]["yield_rate"]["value"] == 0
    assert "nothing is outside the window" in fitted.err


def test_figures_that_a_log_does_not_define_have_a_reason_and_never_a_number(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    def evaluated(rows: list[dict[str, Any]]) -> Ended:
        log = write_log(Path("log.jsonl"), rows)
        ended = pollex("evaluate", log, "--rubrics", learnt.rubrics, "--store", store, "--json")
        assert not {"nan", "none", "null", "inf"} & set(ended.err.lower().split())
        return ended

    ups = evaluated([one for one in small_log() if one["thumbs"] == "up"])
    assert (ups.last["positives"], ups.last["negatives"]) == (24, 0)
    for name in ("auc", "delta_netsat"):
        assert (ups.last[name], name in ups.last["intervals"]) == (None, False)
        assert ups.last["undefined"][name]
    assert "undefined" in ups.err
    turns = small_log()[0]["messages"]
    same = evaluated(
        [{"id": f"s{n}", "messages": turns, "thumbs": ("down", "up")[n % 2]} for n in range(24)]
    )
    assert (same.last["auc"], same.last["delta_netsat"]) == (0.5, 0)
    none = evaluated([row("a", [], thumbs="up"), row("b", [], thumbs="down")])
    assert (none.code, none.last["n"], none.last["auc"], none.last["outcomes"]) == (
        3,
        0,
        None,
        {"not_scorable": 2},
    )


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
    assert not [file for file in Path().iterdir() if file.name in ("new", odd)]


def test_people_filter_by_the_decision_which_costs_move_and_a_resume_writes_the_same(
    pollex: Pollex, learnt: Learnt
) -> None:
    scoring = ("score", learnt.log, "--rubrics", learnt.rubrics, "--store", "s", "--out")
    costs = ("--set", "costs=1000000:1")
    assert pollex(*scoring, "even.jsonl").code == 0
    assert pollex(*scoring, "careful.jsonl", *costs).code == 0
    even, careful = (read_back(Path(f"{name}.jsonl")) for name in ("even", "careful"))
    assert all(
        one["decision"] == ("positive" if one["probability"] >= 0.5 else "negative") for one in even
    )
    assert {one["decision"] for one in careful} == {"negative"}
    assert all(
        (one["decision"] == one["label"]) == (one["differs"] is None) for one in (*even, *careful)
    )
    assert pollex(*scoring, "again.jsonl", *costs, "--resume").code == 0
    assert Path("careful.jsonl").read_bytes() == Path("again.jsonl").read_bytes()


def test_a_page_lies_beside_in_nobodys_place_and_csv_has_a_column_a_rubric_in_place_of_lists(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    arguments = ("score", learnt.log, "--rubrics", learnt.rubrics, "--store", store, "--out")
    Path("scores.html").write_text("mine", encoding="utf-8")
    assert pollex(*arguments, "scores.csv").code == 0
    assert Path("scores.html").read_text(encoding="utf-8") == "mine"
    page = Path("scores-scores.html").read_text(encoding="utf-8")
    assert "What lowers scores" in page
    with Path("scores.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [
        make_rubric_column_name(rubric.id) for rubric in RubricSet.load(learnt.rubrics).rubrics
    ]
    assert all(0 <= float(row[column]) <= 10 for row in rows for column in columns)
    assert not any("[" in cell or "{" in cell for row in rows for cell in row.values())
    assert rows[0]["id"] in page
    pollex(*arguments, "wide.jsonl", "--set", "wide=yes")
    assert Path("wide.html").exists()
    first = read_back(Path("wide.jsonl"))[0]
    assert {answer["rubric"]: answer["value"] for answer in first["answers"]} == {
        column.removeprefix("rubric_"): first[column] for column in columns
    }


def test_scores_of_logs_unlike_the_sets_own_are_not_called_calibrated(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    bad = [row for row in small_log(60, seed=5) if row["thumbs"] == "down"]
    given = ("--rubrics", learnt.rubrics, "--store", store, "--out", "scores.jsonl", "--json")
    unlike = pollex("score", write_log(Path("bad.jsonl"), bad), *given)
    assert (unlike.last["unlike"], unlike.last["calibrated"]) == (True, False)
    assert "unlike those that the set was learned on" in unlike.err
    assert not pollex("score", learnt.log, *given).last["unlike"]
    few = pollex("score", write_log(Path("few.jsonl"), bad[:5]), *given).last
    assert "drift" not in few


def test_a_sets_spread_is_of_the_scores_that_it_gives(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    given = ("--rubrics", learnt.rubrics, "--store", store, "--out", "scores.jsonl", "--json")
    own = pollex("score", learnt.log, *given).last
    # its own log is spread exactly alike: answers by folds are none that it gives
    netsat = [row["netsat"] for row in read_back(Path("scores.jsonl")) if row["netsat"] is not None]
    spread = RubricSet.load(learnt.rubrics).spread
    assert spread is not None
    bins = np.searchsorted(spread.edges, netsat, side="right")
    assert np.bincount(bins, minlength=len(spread.counts)).tolist() == list(spread.counts)
    assert own["drift"]["value"] == pytest.approx(0)


JUDGES = ["=cmd", "o'hara"]
"""Names that a spreadsheet or SQL would take for something else."""


def test_every_format_has_a_column_for_each_judge(
    learnt: Learnt, pollex: Pollex, store: Path
) -> None:
    with_judges(RubricSet.load(learnt.rubrics), JUDGES).save(Path("judged.json"))
    scoring = ("score", learnt.log, "--rubrics", "judged.json", "--store", store)
    for ending in ("jsonl", "csv", "parquet"):
        ended = pollex(*scoring, "--out", f"s.{ending}", "--judge", "all")
        assert ended.code == 0, ended.err
        for one in read_back(Path(f"s.{ending}")):
            strict, p, mild = (
                float(one[name])
                for name in ("probability_=cmd", "probability", "probability_o'hara")
            )
            assert strict < p < mild
            assert float(one["entropy"]) == pytest.approx(
                -p * math.log(p) - (1 - p) * math.log(1 - p)
            )


@pytest.mark.nightly
def test_an_evaluation_tells_how_true_probabilities_are_and_that_labels_are_missing(
    learnt: Learnt, pollex: Pollex, store: Path
) -> None:
    ended = pollex("evaluate", learnt.log, "--rubrics", learnt.rubrics, "--json", "--store", store)
    assert ended.code == 0, ended.err
    found = ended.last["probability"]
    assert found["n"] == ended.last["n"]
    assert {"log_loss", "brier", "smece", "share_log_loss", "share_brier", "gain"} <= found.keys()
    assert found["gain"] == pytest.approx(found["share_log_loss"] - found["log_loss"])
    assert (ended.last["calibrated"], ended.last["labels"] + ended.last["labels_missing"]) == (
        False,
        50,
    )
    assert f"{ended.last['labels_missing']} are missing" in ended.err


async def page_of(kept: Store, run: str, conversation: str) -> Response:
    async with client_of(made_app(kept)) as client:
        return await client.get("/conversation", params={"run": run, "id": conversation})


def test_scores_are_kept_and_shown_without_a_word_of_the_log(
    pollex: Pollex, learnt: Learnt
) -> None:
    own = Path("own")
    given = (
        "--rubrics",
        learnt.rubrics,
        "--out",
        "no-texts.jsonl",
        "--store",
        own,
        "--set",
        "no_texts=yes",
        "--json",
    )
    ended = pollex("score", learnt.log, *given)
    assert ended.code == 0, ended.err
    run = json.loads(ended.out)["run"]
    assert not any(path.suffix == ".parquet" for path in (own / "texts").rglob("*"))
    rows = duckdb.sql(f"SELECT opening FROM '{own}/runs/{run}/conversations*.parquet'").fetchall()
    assert rows
    assert set(rows) == {("",)}
    with Store.open(own, read_only=True) as kept:
        found = list(iterate_conversations(kept, run))
        assert len(found) == len(rows)
        assert not any(one.turns for one in found)
        page = asyncio.run(page_of(kept, run, found[0].id))
    assert page.status_code == 200
    assert "no_texts" in page.text


@pytest.mark.nightly
def test_one_of_8_mb_is_named_and_one_of_thousands_of_turns_is_scored(
    learnt: Learnt, store: Path, pollex: Pollex
) -> None:
    rows = small_log()[:3]
    asked = {"role": "user", "content": "Why does the build still fail? " * 20}
    answered = {"role": "assistant", "content": "Please run it again, and show me the error. " * 20}
    rows.insert(1, {"id": "huge", "messages": [asked, answered] * 5400})
    rows.insert(
        1,
        {
            "id": "long",
            "messages": [{**asked, "content": "Again?"}, {**answered, "content": "Yes."}] * 1000,
        },
    )
    log = write_log(Path("log.jsonl"), rows)
    assert log.stat().st_size > 8_000_000
    ended = pollex("score", log, "--rubrics", learnt.rubrics, "--out", "s.jsonl", "--store", store)
    assert ended.code == 3
    assert "huge" in ended.err + ended.out
    found = {
        one["id"]: one["outcome"]
        for one in map(json.loads, Path("s.jsonl").read_text().splitlines())
    }
    assert found == {row["id"]: "scored" for row in rows} | {"huge": "not_scorable"}


def test_arrays_of_a_set_that_was_put_aside_are_not_removed(learnt: Learnt, tmp_path: Path) -> None:
    first = RubricSet.load(learnt.rubrics)
    arrays = b"other arrays"
    facts = first.calibrator.facts | {"arrays_sha256": hashlib.sha256(arrays).hexdigest()}
    calibrator = first.calibrator.model_copy(update={"facts": facts})
    second = first.model_copy(update={"calibrator": calibrator}).with_arrays(arrays)
    first.save(tmp_path / "rubrics.json")
    (tmp_path / "rubrics.json").rename(tmp_path / "rubrics.old")
    second.save(tmp_path / "rubrics.json")
    assert RubricSet.load(tmp_path / "rubrics.old") == first
