"""`pollex label next`: which conversations or texts it lists, what it writes, what it refuses."""

import csv
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_log import Ended, row, small_log, write_log
from small_runs import Learnt, Pollex, run_here

from pollex.cli.main import resume_command
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
    return pollex("label", "next", log, "--rubrics", learnt.rubrics, "--store", store, "--json", *more)


def test_only_conversations_without_a_label_are_listed_with_probability_and_entropy(
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


@pytest.mark.nightly
def test_asked_for_more_than_there_are_it_lists_all_that_can_be_scored(
    pollex: Pollex, learnt: Learnt, store: Path, log: Path
) -> None:
    found = listed(pollex, learnt, store, log, "--count", "99").last["next"]
    assert sorted(one["id"] for one in found) == [f"n{number}" for number in range(12, 24)]


def test_a_log_in_which_everything_is_labelled_has_nothing_to_list(pollex: Pollex, learnt: Learnt, store: Path) -> None:
    ended = listed(pollex, learnt, store, learnt.log)
    assert (ended.code, ended.last["next"]) == (0, [])
    assert "Every conversation has a label already." in ended.err


@pytest.mark.nightly
def test_what_is_written_can_be_labelled_and_learnt_from(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path, log: Path
) -> None:
    listed(pollex, learnt, store, log, "--out", "next.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "next.jsonl").read_text(encoding="utf-8").splitlines()]
    original = {one["id"]: one for one in map(json.loads, log.read_text(encoding="utf-8").splitlines())}
    for one in rows:
        assert one["thumbs"] is None
        assert one["messages"] == original[one["id"]]["messages"]
        one["thumbs"] = "up"
    write_log(tmp_path / "labelled.jsonl", rows)
    assert read_logs(tmp_path / "labelled.jsonl").counts[Label.POSITIVE] == 12


def test_the_options_that_read_the_log_read_what_was_filled_in_too(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    options = {"id_field": "about.key", "label_field": "verdict", "group_field": "user", "messages_field": "said"}
    rare = [word for name in options if name != "label_field" for word in ("--set", f"{name}={options[name]}")]
    given = ["--label-field", options["label_field"], *rare]
    rows = [
        {
            "about": {"key": one["id"]},
            "said": one["messages"],
            "verdict": None,
            "user": f"u{number % 3}",
            "share": math.nan,
        }
        for number, one in enumerate(small_log(each=4, seed=3))
    ]
    log = write_log(tmp_path / "named.jsonl", [*rows[:-1], rows[-1] | {"verdict": "up"}])
    listed(pollex, learnt, store, log, "--out", "next.jsonl", *given)
    filled = [
        json.loads(line) | {"verdict": "down"} for line in (tmp_path / "next.jsonl").read_text("utf-8").splitlines()
    ]
    assert len(filled) == len(rows) - 1
    both = read_logs(
        [log, write_log(tmp_path / "filled.jsonl", filled)], options=ReadOptions(**options, on_duplicate="last")
    )
    assert both.counts == {Label.POSITIVE: 1, Label.NEGATIVE: len(filled), Label.NONE: 0}
    assert {one.id: one.group for one in both} == {one["about"]["key"]: one["user"] for one in rows}


def test_what_was_filled_in_is_told_from_the_log_by_no_other_field_of_thumbs(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    rows = [one | {"user_id": "u1"} for one in small_log(each=4, seed=3)]
    for one in rows:
        one["feedback"] = one.pop("thumbs")
    for one in rows[2:]:
        one["feedback"] = None
    log = write_log(tmp_path / "feedback.jsonl", rows)
    listed(pollex, learnt, store, log, "--out", "next.jsonl")
    filled = [
        json.loads(line) | {"feedback": "up"} for line in (tmp_path / "next.jsonl").read_text("utf-8").splitlines()
    ]
    again = [log, write_log(tmp_path / "filled.jsonl", filled)]
    both = read_logs(again, options=ReadOptions(group_field="user_id", on_duplicate="last"))
    assert both.counts[Label.NONE] == 0
    assert {one.group for one in both} == {"u1"}


def test_csv_keeps_ids_that_hold_odd_characters_so_that_they_join(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    odd = "👩\u200d💻-1"
    rows = [row(odd, [f"{odd} how?", "I can't help with that."])]
    listed(pollex, learnt, store, write_log(tmp_path / "odd.jsonl", rows), "--out", "next.csv")
    (found,) = csv.DictReader((tmp_path / "next.csv").open(encoding="utf-8", newline=""))
    assert found["id"] == odd
    assert "\\u200d" in found["begins"]


def test_csv_has_no_cell_that_a_spreadsheet_would_run(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    evil = "=cmd()"
    rows = [row(evil, [f"{evil} \x1b[2J", "I can't help with that."])]
    ended = listed(pollex, learnt, store, write_log(tmp_path / "evil.jsonl", rows), "--out", "next.csv")
    assert ended.code == 0
    (found,) = csv.DictReader((tmp_path / "next.csv").open(encoding="utf-8", newline=""))
    assert found["id"] == f"'{evil}"
    assert found["begins"].startswith("'=")
    assert "\x1b" not in found["begins"]
    plain = pollex("label", "next", tmp_path / "evil.jsonl", "--rubrics", learnt.rubrics, "--store", store)
    assert "\x1b" not in plain.out


def test_what_was_scored_is_kept_as_a_run_and_the_list_is_the_same_again(
    pollex: Pollex, learnt: Learnt, store: Path, log: Path
) -> None:
    first = listed(pollex, learnt, store, log).last
    again = listed(pollex, learnt, store, log, "--resume").last
    assert again["run"] == first["run"]
    assert again["next"] == first["next"]
    kept = json.loads(pollex("runs", "--store", store, "--json").out.splitlines()[-1])["runs"]
    assert [(one["command"], one["id"]) for one in kept] == [("label", first["run"])]
    with Store.open(store, read_only=True) as opened:
        scores = opened.ask(first["run"], "SELECT count(DISTINCT conversation) AS n FROM scores")
    assert scores == [{"n": 25}]


@pytest.mark.parametrize(
    ("given", "command"),
    [
        (
            ["label", "next", "log.jsonl", "--rubrics", "r.json"],
            "pollex label next log.jsonl --rubrics r.json --resume",
        ),
        (["label", "next", "--calibrator=folder", "a.csv"], ""),
    ],
)
def test_only_what_makes_a_run_is_told_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, given: list[str], command: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["pollex", *given])
    assert resume_command() == command


JUDGES = ("ann", "bob")


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, one.values())) for one in rows)]) + "\n")
    return path


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers to one question about 40 texts, judgments of 30 of them, and a calibrator fitted to these."""
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    chances = {f"t{number:02}": round(float(p), 4) for number, p in enumerate(rng.random(40))}
    table(
        folder / "answers.csv",
        [
            {"text_id": text, "question": "overall", "option": option, "probability": p if option else round(1 - p, 4)}
            for text, p in chances.items()
            for option in (0, 1)
        ],
    )
    table(
        folder / "judgments.csv",
        [
            {"text_id": text, "question": "overall", "judge": judge, "answer": int(rng.random() < p)}
            for number, (text, p) in enumerate(chances.items())
            for judge in JUDGES
            if number < (30 if judge == "ann" else 10)
        ],
    )
    paths = [folder / "answers.csv", folder / "judgments.csv", "--out", folder / "kept", "--model", "ordinal"]
    ended = run_here("calibrate", "fit", *paths)
    assert ended.code == 0, ended.err
    return folder


def test_the_list_with_answers_filled_in_is_a_table_of_judgments(pollex: Pollex, tables: Path) -> None:
    asked, filled = tables / "asked.csv", tables / "filled.csv"
    ended = pollex("label", "next", "--calibrator", tables / "kept", tables / "answers.csv", "--out", asked)
    assert ended.code == 0, ended.err
    with asked.open(encoding="utf-8") as file:
        rows = [row | {"answer": number % 2} for number, row in enumerate(csv.DictReader(file))]
    table(filled, rows)
    files = [tables / "answers.csv", filled]
    again = pollex("label", "next", "--calibrator", tables / "kept", *files, "--count", "40", "--json")
    assert again.code == 0, again.err
    judged = {(row["text_id"], row["judge"]) for row in rows}
    assert not {(one["text_id"], one["judge"]) for one in again.last["next"]} & judged


def test_texts_are_listed_with_whom_to_ask_and_never_what_is_judged_already(pollex: Pollex, tables: Path) -> None:
    files = [tables / "answers.csv", tables / "judgments.csv"]
    ended = pollex("label", "next", "--calibrator", tables / "kept", *files, "--count", "12", "--json")
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


def test_only_those_are_asked_who_were_named_and_judgments_may_be_left_out(
    pollex: Pollex, tables: Path, tmp_path: Path
) -> None:
    arguments = ["--calibrator", tables / "kept", tables / "answers.csv", "--judge", "ann", "--out", "n.jsonl"]
    plain = pollex("label", "next", *arguments)
    assert plain.code == 0, plain.err
    rows = [json.loads(line) for line in (tmp_path / "n.jsonl").read_text().splitlines()]
    assert {one["judge"] for one in rows} == {"ann"}
    assert len(rows) == 20
    assert "thumbs" not in rows[0]
    assert "Labels of 'overall' to ask for: 20;" in plain.out
    assert "missing" in plain.out  # 40 labels are fewer than 50


def test_a_questionnaire_is_a_sheet_to_fill_in_and_what_is_filled_in_is_fitted(pollex: Pollex, tmp_path: Path) -> None:
    write_log(tmp_path / "log.jsonl", small_log()[:12])
    asked = ("label", "next", "log.jsonl", "--for", "share", "--count", "8", "--questionnaire", "llm-rubric")
    assert pollex(*asked, "--out", "sheet.csv").code == 0
    with Path("sheet.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8 * 9
    assert {row["question"] for row in rows} == {f"Q{n}" for n in range(9)}
    assert "(1: not at all; 2: a little; 3: mostly; 4: fully)" in rows[0]["asks"]
    given = [
        {"text_id": row["text_id"], "question": row["question"], "option": option, "probability": 0.3}
        for row in rows
        for option in (1, 2, 3)
    ]
    filled = [row | {"answer": "" if row["question"] == "Q2" else 1 + n * 7 % 11 % 3} for n, row in enumerate(rows)]
    for name, table in (("answers.csv", given), ("filled.csv", filled)):
        with Path(name).open("w", newline="") as file:
            writer = csv.DictWriter(file, table[0])
            writer.writeheader()
            writer.writerows(table)
    fitted = pollex("calibrate", "fit", "answers.csv", "filled.csv", "--out", "c", "--model", "judge_mean", "--json")
    assert (fitted.code, fitted.last["judgments"]) == (0, 8 * 8)
    assert [note["what"] for note in fitted.last["notes"]] == ["without an answer"]
