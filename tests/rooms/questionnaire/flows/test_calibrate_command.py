"""`pollex calibrate`: from tables with faults to a kept calibrator, predictions and a page."""

import csv
import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from small_log import Ended, read_rows
from small_runs import Pollex, run_here

from pollex.calibration.models import get_model_class, list_model_names
from pollex.calibration.models.network import CalibrationNetwork
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.storage import load
from pollex.graphs.context import NullProgress
from pollex.measures.distributions import Predictions
from pollex.rooms.questionnaire.calibration.leverage import (
    compute_leverage_per_text,
    compute_main_gradient,
    compute_own_gradient,
)
from pollex.rooms.questionnaire.formats.read_tables import read_answers, read_judgments
from pollex.rooms.questionnaire.services.calibrate import describe_model_choice
from pollex.rooms.questionnaire.services.calibration_report import (
    QUICK_EFFORT,
    measure_leverages,
    measure_saved,
    rebuild_unfitted_model,
    split_bench,
)

JUDGES = ("ann", "bob", "=cy")
TEXTS = 40


def answer_rows(texts: range, seed: int = 0) -> list[dict[str, Any]]:
    """Two questions of three options; the second says nothing."""
    rng = np.random.default_rng(seed)
    return [
        {
            "text_id": f"t{text}",
            "question": question,
            "option": option + 1,
            "probability": round(float(p), 6) * 0.99,
        }
        for text in texts
        for question in ("overall", "length")
        for option, p in enumerate(rng.dirichlet([0.7, 0.7, 0.7]))
    ]


def judgment_rows(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """People give the answer that the judge expects; ann one less, where there is one."""
    expected: dict[str, float] = {}
    for row in answers:
        if row["question"] == "overall":
            expected[row["text_id"]] = (
                expected.get(row["text_id"], 0.0) + row["option"] * row["probability"]
            )
    return [
        {
            "text_id": text,
            "question": "overall",
            "judge": judge,
            "answer": int(np.clip(answer, 1, 3)),
        }
        for number, (text, value) in enumerate(expected.items())
        for judge in (JUDGES[number % 3], JUDGES[(number + 1) % 3])
        for answer in [round(value) - (judge == "ann")]
    ]


def write(path: Path, rows: list[dict[str, Any]], *extra: str) -> Path:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows), *extra]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both tables, new answers, and a calibrator."""
    folder = tmp_path_factory.mktemp("tables")
    answers = answer_rows(range(TEXTS))
    write(folder / "answers.csv", answers)
    write(folder / "judgments.csv", judgment_rows(answers))
    write(folder / "new.csv", answer_rows(range(100, 110), seed=1))
    fitted = fit(folder, "--json")
    assert fitted.code == 0, fitted.err
    (folder / "fit.json").write_text(json.dumps(fitted.last), encoding="utf-8")
    return folder


def fit(folder: Path, *more: object) -> Ended:
    arguments = [
        folder / "answers.csv",
        folder / "judgments.csv",
        "--out",
        folder / "kept",
        "--model",
        "ordinal",
    ]
    return run_here("calibrate", "fit", *arguments, *more)


def predict(tables: Path, out: Path, *more: object, answers: Path | None = None) -> Ended:
    return run_here(
        "calibrate", "predict", tables / "kept", answers or tables / "new.csv", "--out", out, *more
    )


def test_what_was_left_out_is_said_and_the_exit_code_is_three(pollex: Pollex, tables: Path) -> None:
    answers = write(
        Path("a.csv"), answer_rows(range(TEXTS)), "t99,overall,1,-0.5", "t0,length,9,nan"
    )
    judged = judgment_rows(answer_rows(range(TEXTS)))
    judgments = write(Path("j.csv"), judged, "t0,overall,dee,2", "x,overall,ann,1")
    arguments = (
        answers,
        judgments,
        "--out",
        "kept",
        "--model",
        "ordinal",
        "--options",
        "length=1,2,3",
    )
    ended = pollex("calibrate", "fit", *arguments, "--json")
    assert ended.code == 3
    left_out = {fault["what"]: fault for fault in ended.last["left_out"]}
    faults = (
        "below 0",
        "with an unknown option",
        "without an answer that can be used",
        "whose text has no answers",
    )
    assert {what: fault["count"] for what, fault in left_out.items()} == dict.fromkeys(faults, 1)
    assert left_out["below 0"]["examples"] == [f"{answers}:242 (t99, overall, option 1: -0.5)"]
    assert [note["examples"] for note in ended.last["notes"]] == [["dee"]]
    assert "Left out: 1 probability below 0" in ended.err
    assert ended.err.count("Left out") == 4


def test_the_network_that_begins_as_an_ordinal_model_is_what_predicts(
    tables: Path, tmp_path: Path
) -> None:
    arguments = [
        tables / "answers.csv",
        tables / "judgments.csv",
        "--out",
        tmp_path / "kept",
        "--main-only",
    ]
    ended = run_here("calibrate", "fit", *arguments, "--json")
    assert ended.code == 0, ended.err
    model = load(tmp_path / "kept")
    assert isinstance(model, CalibrationNetwork)
    assert isinstance(model.starts_[0], OrdinalMixedEffects)
    assert predict(tmp_path, tmp_path / "p.csv", "--json", answers=tables / "new.csv").code == 0


@pytest.mark.nightly
def test_what_a_search_found_is_told() -> None:
    rng = np.random.default_rng(0)
    X = rng.dirichlet([1, 1], 40)
    model = CalibrationNetwork(h1=2, h2=2, seeds=1, search="random", draws=1, search_seconds=0.1)
    model.fit(X, (X[:, 1] > 0.5).astype(float))
    (said,) = describe_model_choice(model)
    assert said == f"Chosen: {model.search_.sentence()}"
    assert "1 setting of the network tried" in said


def test_predictions_follow_the_answers_and_are_distributions(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.jsonl"
    ended = predict(
        tables, out, "--judge", "ann", "--judge", "nobody", "--aggregate", "max", "--json"
    )
    assert ended.code == 0, ended.err
    assert (ended.last["texts"], ended.last["learned_from"], ended.last["strangers"]) == (
        10,
        0,
        ["nobody"],
    )
    rows = read_rows(out)
    assert [row["text_id"] for row in rows] == [f"t{text}" for text in range(100, 110)]
    for row in rows:
        p = np.array([row["p_1"], row["p_2"], row["p_3"]])
        values = np.array([1.0, 2.0, 3.0])
        assert p.sum() == pytest.approx(1)
        assert row["variance"] == pytest.approx(p @ values**2 - (p @ values) ** 2)
        assert row["entropy"] == pytest.approx(-(p * np.log(p)).sum())
        ann, nobody = row["judges"]
        assert (ann["judge"], nobody["judge"]) == ("ann", "nobody")
        assert ann["expected"] < p @ values  # she gives one less
        assert p == pytest.approx(np.mean([ann["probabilities"], nobody["probabilities"]], axis=0))
        assert row["expected"] == pytest.approx(max(ann["expected"], nobody["expected"]))


def test_a_score_is_the_mean_over_trusted_judges_and_of_a_stranger_only_when_asked(
    tables: Path, tmp_path: Path
) -> None:
    found = []
    for more in (
        (),
        [word for judge in JUDGES for word in ("--judge", judge)],
        ("--aggregate", "unknown"),
    ):
        assert predict(tables, tmp_path / "p.jsonl", *more).code == 0
        found.append(read_rows(tmp_path / "p.jsonl"))
    for everybody, trusted, unknown in zip(*found, strict=True):
        mean = np.mean([each["expected"] for each in trusted["judges"]])
        assert everybody["expected"] == pytest.approx(trusted["expected"]) == pytest.approx(mean)
        values = [unknown[f"p_{value}"] * value for value in (1, 2, 3)]
        assert unknown["expected"] == pytest.approx(sum(values)) != pytest.approx(mean, abs=1e-6)


def test_each_question_has_a_calibrator_of_its_own(pollex: Pollex, tables: Path) -> None:
    rows = judgment_rows(answer_rows(range(TEXTS)))
    judgments = write(
        Path("j.csv"), [row | {"question": name} for row in rows for name in ("overall", "length")]
    )
    fit_to = ("calibrate", "fit", tables / "answers.csv", judgments, "--model", "ordinal", "--main")
    for main, more in {"overall": [], "length": ["--main-only"]}.items():
        fitted = pollex(*fit_to, main, "--out", main, *more, "--json")
        assert fitted.last["questions"] == [main] if more else ["overall", "length"]
    for main, more in {"overall": ["--question", "all"], "length": []}.items():
        arguments = (main, tables / "new.csv", "--out", f"{main}.jsonl", *more)
        told = pollex("calibrate", "predict", *arguments, "--json").last["questions"]
        assert told == ["overall", "length"] if more else ["length"]
    assert read_rows(Path("overall.jsonl"))[10:] == read_rows(Path("length.jsonl"))


def test_fewer_than_fifty_labels_are_not_called_calibrated_and_no_model_is_whatever_it_learnt(
    pollex: Pollex, tables: Path, tmp_path: Path
) -> None:
    assert not [name for name in list_model_names() if "calibrated" in get_model_class(name).title]
    told = json.loads((tables / "fit.json").read_text("utf-8"))
    assert (told["main"], told["texts"], told["labels"], told["judges"]) == (
        "overall",
        TEXTS,
        2 * TEXTS,
        3,
    )
    assert (told["calibrated"], told["missing_labels"], told["left_out"]) == (True, 0, [])
    few = judgment_rows(answer_rows(range(TEXTS)))[:30]
    write(Path("thrice.csv"), [*few, *few, *few])
    arguments = (tables / "answers.csv", Path("thrice.csv"), "--out", "kept", "--model", "ordinal")
    ended = pollex("calibrate", "fit", *arguments, "--json")
    assert (ended.last["labels"], ended.last["missing_labels"], ended.last["calibrated"]) == (
        30,
        20,
        False,
    )
    said = " ".join(ended.err.split())
    assert "not yet calibrated: 30 of 50 labels, 20 are missing" in said
    assert "90 judgments, 90 of them of the main question" in said
    assert "30 cases of a text judged again by the same judge: used, and no further label" in said
    again = predict(tmp_path, Path("p.csv"), "--json", answers=tables / "new.csv")
    assert again.last["calibrated"] is False
    assert "not yet calibrated" in again.err


def test_a_record_of_training_that_is_missing_broken_or_anothers_vouches_for_none(
    tables: Path, tmp_path: Path
) -> None:
    assert (
        predict(tables, tmp_path / "p.csv", "--json", answers=tables / "answers.csv").last[
            "learned_from"
        ]
        == TEXTS
    )
    record = shutil.copytree(tables / "kept", tmp_path / "kept") / "training.json"
    own = json.loads(record.read_text())["arrays_sha256"]
    whole = record.read_text()
    for known in (
        "",
        "[]",
        f'{{"labels": "many", "text_hashes": 5, "arrays_sha256": "{own}"}}',
        f'{{"labels": -1, "text_hashes": [1], "arrays_sha256": "{own}"}}',
        whole.replace(own, "0" * 64),  # as of another fit that ended last
    ):
        record.write_text(known, encoding="utf-8")
        ended = predict(tmp_path, tmp_path / "p.csv", "--json", answers=tables / "answers.csv")
        assert (ended.code, ended.last["learned_from"], ended.last["calibrated"]) == (
            0,
            None,
            False,
        ), known
        assert "it isn't known which texts it was fitted on" in ended.err
        assert "calibrated on" not in ended.err


def test_the_three_formats_hold_the_same_and_a_spreadsheet_runs_nothing(
    tables: Path, tmp_path: Path
) -> None:
    rows = [row | {"text_id": "=1+1"} for row in answer_rows(range(1))]
    answers = write(tmp_path / "new.csv", [*rows, *answer_rows(range(2, 4))])
    for ending in ("jsonl", "csv", "parquet"):
        who = ("--judge", "=cy", "--judge", "caf\udce9")  # no text
        assert predict(tables, tmp_path / f"p.{ending}", *who, answers=answers).code == 0
    lines = read_rows(tmp_path / "p.jsonl")
    with (tmp_path / "p.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    table = duckdb.sql(f"SELECT * FROM '{tmp_path}/p.parquet'")
    assert [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()] == lines
    assert [float(row["expected"]) for row in cells] == [row["expected"] for row in lines]
    assert [json.loads(row["judges"]) for row in cells] == [row["judges"] for row in lines]
    assert cells[0]["text_id"] == "'=1+1"


def test_answers_without_order_have_no_expected_one_and_long_codes_have_a_column_each(
    pollex: Pollex, tmp_path: Path
) -> None:
    codes = ["1000001", "1000002", "0.5"]
    asked = [f"t{t},kind,{code},0.3" for t in range(6) for code in codes]
    given = [f"t{t},kind,ann,{codes[t % 3]}" for t in range(6)]
    Path("a.csv").write_text("\n".join(["text_id,question,option,probability", *asked]))
    Path("j.csv").write_text("\n".join(["text_id,question,judge,answer", *given]))
    tables = (Path("a.csv"), Path("j.csv"))
    fitted = ("--out", "kept", "--main", "kind", "--nominal", "kind", "--model", "judge_mean")
    assert pollex("calibrate", "fit", *tables, *fitted).code == 0
    arguments = (tmp_path, Path("p.parquet"), "--judge", "ann")
    assert predict(*arguments, answers=tables[0]).code == 0
    columns = " + ".join(f'"p_{code}"' for code in codes)
    found = duckdb.sql(f"SELECT expected, variance, {columns}, judges FROM 'p.parquet'").fetchall()
    for expected, variance, total, judges in found:
        assert (expected, variance, judges[0]["expected"]) == (None, None, None)
        assert total == pytest.approx(1)
    refused = predict(*arguments, "--aggregate", "max", answers=tables[0])
    assert (refused.code, "have no order" in refused.err) == (2, True)


def test_the_command_that_is_recommended_can_be_pasted_and_tells_why_four_texts_have_no_interval(
    pollex: Pollex,
) -> None:
    asked = [f"t{n},overall,{option},0.5" for n in range(4) for option in (1, 2)]
    given = [f"t{n},overall,j{j},{1 + (n + j) % 2}" for n in range(4) for j in range(15)]
    tables = Path("my answers.csv"), Path("judgments.csv")
    tables[0].write_text("\n".join(["text_id,question,option,probability", *asked]))
    tables[1].write_text("\n".join(["text_id,question,judge,answer", *given]))
    ended = pollex("calibrate", "fit", *tables, "--out", "a & b", "--model", "constant")
    command = shlex.split(ended.out.partition("Measure it next: ")[2])
    assert command[:3] == ["pollex", "calibrate", "report"]
    reported = pollex(*command[1:])
    assert "No interval: fewer than 5 texts are behind the figures." in reported.out
    assert "too few" not in reported.out  # 60 labels


def test_a_model_chosen_by_leaving_groups_out_or_by_a_search_is_reported_likewise(
    pollex: Pollex, tables: Path
) -> None:
    rows = [
        row | {"system": f"s{int(row['text_id'][1:]) % 3}"} for row in answer_rows(range(TEXTS))
    ]
    answers = write(Path("answers.csv"), rows)
    arguments = (answers, tables / "judgments.csv", "--out", "kept")
    fitted = pollex("calibrate", "fit", *arguments, "--shift", "system", "--json")
    assert fitted.code == 0, fitted.err
    assert "3 groups" in fitted.last["choice"][0]
    model = load(Path("kept"))
    table = read_answers(answers)
    judged = read_judgments(tables / "judgments.csv", table)
    made, groups, unlike = rebuild_unfitted_model(model, "system", table, judged)
    assert (made.get_params()["shift"], unlike) == (True, "")
    assert groups is not None
    assert groups[:4].tolist() == [0, 1, 2, 0]
    made, groups, unlike = rebuild_unfitted_model(model, "topic", table, judged)
    assert (made.get_params()["shift"], groups) == (False, None)
    assert "no column 'topic' of three groups" in unlike
    searching = get_model_class("network")(search="random", search_seconds=50.0)
    made, _, unlike = rebuild_unfitted_model(searching, None, table, judged)
    assert made.get_params()["search_seconds"] == 10.0
    assert "searched for 10 seconds only" in unlike  # in each fold


@pytest.mark.nightly
def test_report_measures_beside_simpler_models_and_writes_a_page(
    pollex: Pollex, tables: Path
) -> None:
    arguments = (
        tables / "kept",
        tables / "answers.csv",
        tables / "judgments.csv",
        "--out",
        "r.html",
    )
    ended = pollex("calibrate", "report", *arguments, "--quick", "--json")
    assert ended.code == 0, ended.err
    told = ended.last
    others = ended.last["others"]
    assert (told["labels"], told["calibrated"], told["learned_from"]) == (2 * TEXTS, True, TEXTS)
    assert others["constant"]["behind"]["low"] > 0  # there is something to learn
    gap = others["constant"]["figures"]["log_loss"]["value"] - told["figures"]["log_loss"]["value"]
    assert others["constant"]["behind"]["value"] == pytest.approx(gap)
    measured = [
        figure for each in (told, *others.values()) for figure in (each["figures"] or {}).values()
    ]
    assert len(measured) > 50
    assert all(
        figure["undefined"] or figure["low"] <= figure["value"] <= figure["high"]
        for figure in measured
    )
    assert told["gains"]["overall"]["low"] > 0 > told["gains"]["length"]["low"]
    by_judge = told["subgroups"]["judge"]
    assert list(by_judge) == ["=cy", "ann", "bob"]
    assert sum(figures["rmse"]["n"] for figures in by_judge.values()) == 2 * TEXTS
    whole = sum(
        figures["log_loss"]["value"] * figures["log_loss"]["n"] for figures in by_judge.values()
    )
    assert whole / (2 * TEXTS) == pytest.approx(told["figures"]["log_loss"]["value"])
    losses = [point["log_loss"] for point in told["learning"]]
    assert losses[-1] < losses[0]
    assert "the kept one as it is" not in others  # it learnt from these texts
    page = Path("r.html").read_text("utf-8")
    assert "judge =cy, " in page
    assert "<script" not in page
    assert "//" not in page


def test_the_kept_calibrator_has_its_own_leverage_and_is_measured_as_it_is_on_texts_that_are_new_to_it(
    tables: Path, tmp_path: Path
) -> None:
    model = load(tables / "kept")
    rows = answer_rows(range(200, 220), seed=2)
    answers = write(tmp_path / "a.csv", rows)
    judgments = write(tmp_path / "j.csv", judgment_rows(rows))
    table = read_answers(answers, scales=model.questionnaire_.asked)
    judged = read_judgments(judgments, table, questionnaire=model.questionnaire_)
    bench = split_bench(table, judged, 0, None, QUICK_EFFORT, NullProgress())
    (found,) = measure_leverages(model, bench)
    on_main = compute_main_gradient(model, table.X)
    on_length = compute_own_gradient(model.questionnaire_, table.X, "length")
    assert found.mean == pytest.approx(np.nanmean(compute_leverage_per_text(on_main, on_length)))
    given = bench.given
    own = Predictions(np.full((len(given), 3), 1 / 3), given.answer, given.row, (1.0, 2.0, 3.0))
    assert measure_saved(bench, model, own, seen_texts=1) == []
    # it may have learnt from all of them
    assert measure_saved(bench, model, own, seen_texts=None) == []
    (itself,) = measure_saved(bench, model, own, seen_texts=0)
    proba = model.predict_proba(table.X[given.row], given.names())
    loss = -np.log(proba[np.arange(len(given)), given.answer]).mean()
    assert itself.assessment is not None
    assert itself.behind is not None
    assert itself.assessment.log_loss.value == pytest.approx(loss)
    assert itself.behind.value == pytest.approx(loss - np.log(3))
