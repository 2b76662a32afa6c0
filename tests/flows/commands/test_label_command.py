"""`pollex label next`: which conversations or texts it lists, what it writes, what it refuses."""

import csv
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_log import Ended, read_rows, row, small_log, write_log
from small_runs import Learnt, Pollex, run_here

from pollex.cli.main import write_resume_command
from pollex.conversations.conversation import Label
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs
from pollex.store.store import Store


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Twelve conversations with a thumb, the same number of others without, and one that can't be scored."""
    rows = small_log(each=12, seed=9)
    for number, one in enumerate(rows):
        one["id"] = f"n{number:02}"
        if number >= 12:
            del one["thumbs"]
    return write_log(tmp_path / "some.jsonl", [*rows, row("alone", ["Anybody?"])])


def listed(pollex: Pollex, learnt: Learnt, store: Path, log: Path, *more: object) -> Ended:
    return pollex(
        "label", "next", log, "--rubrics", learnt.rubrics, "--store", store, "--json", *more
    )


def test_only_conversations_without_a_label_are_listed_and_the_run_is_kept_for_the_same_list_again(
    pollex: Pollex, learnt: Learnt, store: Path, log: Path
) -> None:
    ended = listed(pollex, learnt, store, log, "--count", "5")
    assert ended.code == 3, ended.err
    found = ended.last["next"]
    ids = [one["id"] for one in found]
    assert len(set(ids)) == 5
    assert {int(id_[1:]) for id_ in ids} <= set(range(12, 24))
    for one in found:
        p = one["probability"]
        assert one["entropy"] == pytest.approx(-p * math.log(p) - (1 - p) * math.log(1 - p))
        assert "judge" not in one
    assert ended.last["outcomes"] == {"not_scorable": 1, "scored": 24}
    assert "5 of 13 conversations without a label" in ended.err
    assert ("calibrated on" in ended.err) == ended.last["calibrated"]
    again = listed(pollex, learnt, store, log, "--count", "5", "--resume").last
    assert (again["run"], again["next"]) == (ended.last["run"], found)
    kept = pollex("runs", "--store", store, "--json").last["runs"]
    assert [(one["command"], one["id"]) for one in kept] == [("label", again["run"])]
    with Store.open(store, read_only=True) as opened:
        scores = opened.ask(again["run"], "SELECT count(DISTINCT conversation) AS n FROM scores")
    assert scores == [{"n": 25}]


def test_a_log_in_which_everything_is_labelled_has_nothing_to_list(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    ended = listed(pollex, learnt, store, write_log(Path("log.jsonl"), small_log()[:6]))
    assert (ended.code, ended.last["next"]) == (0, [])
    assert "Every conversation has a label already." in ended.err


def test_asked_for_more_than_there_are_it_writes_all_that_can_be_scored_to_be_labelled_and_learnt_from(
    pollex: Pollex, learnt: Learnt, store: Path, log: Path
) -> None:
    listed(pollex, learnt, store, log, "--count", "99", "--out", "next.jsonl")
    rows = read_rows(Path("next.jsonl"))
    assert sorted(one["id"] for one in rows) == [f"n{number}" for number in range(12, 24)]
    original = {one["id"]: one["messages"] for one in read_rows(log)}
    assert all((one["thumbs"], one["messages"]) == (None, original[one["id"]]) for one in rows)
    labelled = write_log(Path("labelled.jsonl"), [one | {"thumbs": "up"} for one in rows])
    assert read_logs(labelled).counts[Label.POSITIVE] == 12


def test_what_was_filled_in_is_read_with_the_log_by_the_options_that_read_it_and_no_other_field_of_thumbs(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    rows = small_log(each=4, seed=3)
    users = {one["id"]: f"u{n % 3}" for n, one in enumerate(rows)}
    usual = [
        {"id": one["id"], "messages": one["messages"], "user_id": users[one["id"]]} for one in rows
    ]
    own = [
        {"about": {"key": one["id"]}, "said": one["messages"], "user": users[one["id"]]}
        for one in rows
    ]
    rare = {"id_field": "about.key", "messages_field": "said", "group_field": "user"}
    given = [
        "--label-field",
        "verdict",
        *(word for name in rare for word in ("--set", f"{name}={rare[name]}")),
    ]
    for field, mine, words, options in (
        ("feedback", usual, [], {"group_field": "user_id"}),
        ("verdict", own, given, rare | {"label_field": "verdict"}),
    ):
        mine = [one | {field: None, "share": math.nan} for one in mine]
        log = write_log(Path("named.jsonl"), [*mine[:-1], mine[-1] | {field: "up"}])
        listed(pollex, learnt, store, log, "--out", "next.jsonl", *words)
        filled = [one | {field: "down"} for one in read_rows(Path("next.jsonl"))]
        again = [log, write_log(Path("filled.jsonl"), filled)]
        both = read_logs(again, options=ReadOptions(**options, on_duplicate="last"))
        assert both.counts == {Label.POSITIVE: 1, Label.NEGATIVE: 7, Label.NONE: 0}
        assert {one.id: one.group for one in both} == users


def test_csv_keeps_ids_of_odd_characters_so_that_they_join_and_has_no_cell_that_a_spreadsheet_would_run(
    pollex: Pollex, learnt: Learnt, store: Path
) -> None:
    ids = ("👩\u200d💻-1", "=cmd()")
    rows = [row(id_, [f"{id_} \x1b[2J", "I can't help with that."]) for id_ in ids]
    ended = listed(pollex, learnt, store, write_log(Path("odd.jsonl"), rows), "--out", "next.csv")
    assert ended.code == 0
    with Path("next.csv").open(encoding="utf-8", newline="") as file:
        begins = {one["id"]: one["begins"] for one in csv.DictReader(file)}
    assert begins.keys() == {ids[0], f"'{ids[1]}"}
    assert "\\u200d" in begins[ids[0]]
    assert begins[f"'{ids[1]}"].startswith("'=")
    assert "\x1b" not in "".join(begins.values())
    plain = pollex(
        "label", "next", Path("odd.jsonl"), "--rubrics", learnt.rubrics, "--store", store
    )
    assert "\x1b" not in plain.out


def test_only_what_makes_a_run_is_told_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, told in {
        "pollex label next log.jsonl --rubrics r.json": "pollex label next log.jsonl --rubrics r.json --resume",
        "pollex label next --calibrator=folder a.csv": "",
    }.items():
        monkeypatch.setattr(sys, "argv", given.split())
        assert write_resume_command() == told


JUDGES = ("ann", "bob")


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers to one question about 40 texts, judgments of 30 of them, and a calibrator fitted to these."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    chances = {f"t{number:02}": round(float(p), 4) for number, p in enumerate(rng.random(40))}
    asked = [
        {
            "text_id": text,
            "question": "overall",
            "option": option,
            "probability": p if option else round(1 - p, 4),
        }
        for text, p in chances.items()
        for option in (0, 1)
    ]
    given = [
        {"text_id": text, "question": "overall", "judge": judge, "answer": int(rng.random() < p)}
        for number, (text, p) in enumerate(chances.items())
        for judge in JUDGES
        if number < (30 if judge == "ann" else 10)
    ]
    paths = table(folder / "answers.csv", asked), table(folder / "judgments.csv", given)
    ended = run_here("calibrate", "fit", *paths, "--out", folder / "kept", "--model", "ordinal")
    assert ended.code == 0, ended.err
    return folder


def test_texts_are_listed_with_whom_to_ask_and_never_what_is_judged_already(
    pollex: Pollex, tables: Path
) -> None:
    files = [tables / "answers.csv", tables / "judgments.csv"]
    next_ones = ("label", "next", "--calibrator", tables / "kept", *files)
    ended = pollex(*next_ones, "--count", "12", "--json", "--out", "asked.csv")
    assert ended.code == 0, ended.err
    found = ended.last["next"]
    judged = {(one["text_id"], one["judge"]) for one in csv.DictReader(files[1].open())}
    assert len({one["text_id"] for one in found}) == 12
    assert not {(one["text_id"], one["judge"]) for one in found} & judged
    # Of bob there are fewer labels, so that more is to be learnt from him.
    assert sum(one["judge"] == "bob" for one in found) > 6
    for one in found:
        assert sum(one["probabilities"]) == pytest.approx(1)
        assert one["expected"] == pytest.approx(one["probabilities"][1])
    with Path("asked.csv").open(encoding="utf-8") as file:
        rows = [row | {"answer": number % 2} for number, row in enumerate(csv.DictReader(file))]
    filled = table(Path("filled.csv"), rows)
    again = pollex(*next_ones[:4], files[0], filled, "--count", "40", "--json")
    assert again.code == 0, again.err
    assert not {(one["text_id"], one["judge"]) for one in again.last["next"]} & {
        (row["text_id"], row["judge"]) for row in rows
    }


def test_only_those_are_asked_who_were_named_and_judgments_may_be_left_out(
    pollex: Pollex, tables: Path
) -> None:
    arguments = [
        "--calibrator",
        tables / "kept",
        tables / "answers.csv",
        "--judge",
        "ann",
        "--out",
        "n.jsonl",
    ]
    plain = pollex("label", "next", *arguments)
    assert plain.code == 0, plain.err
    rows = read_rows(Path("n.jsonl"))
    assert [(one["judge"], "thumbs" in one) for one in rows] == [("ann", False)] * 20
    assert "Labels of 'overall' to ask for: 20;" in plain.out
    assert "missing" in plain.out  # 40 labels are fewer than 50


def test_a_questionnaire_is_a_sheet_to_fill_in_and_what_is_filled_in_is_fitted(
    pollex: Pollex,
) -> None:
    write_log(Path("log.jsonl"), small_log()[:12])
    asked = (
        "label",
        "next",
        "log.jsonl",
        "--for",
        "share",
        "--count",
        "8",
        "--questionnaire",
        "llm-rubric",
    )
    drawn = pollex(*asked, "--out", "sheet.csv")
    assert (
        "Fill in the answers, then: pollex calibrate fit ANSWERS sheet.csv --out DIR" in drawn.out
    )
    with Path("sheet.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["question"] for row in rows} == {"Q0", "Q1", "Q6", "Q7", "Q8"}, (
        "there are no sources to ask about"
    )
    assert len(rows) == 8 * 5
    assert "(1: not at all; 2: a little; 3: mostly; 4: fully)" in rows[0]["asks"]
    given = [
        {
            "text_id": row["text_id"],
            "question": row["question"],
            "option": option,
            "probability": 0.3,
        }
        for row in rows
        for option in (1, 2, 3)
    ]
    filled = [
        row | {"answer": "" if row["question"] == "Q6" else 1 + n * 7 % 11 % 3}
        for n, row in enumerate(rows)
    ]
    tables = table(Path("answers.csv"), given), table(Path("filled.csv"), filled)
    fitted = pollex("calibrate", "fit", *tables, "--out", "c", "--model", "judge_mean", "--json")
    assert (fitted.code, fitted.last["judgments"]) == (0, 8 * 4)
    assert [note["what"] for note in fitted.last["notes"]] == ["without an answer"]
