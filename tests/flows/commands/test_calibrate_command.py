"""`pollex calibrate`: from tables with faults to a kept calibrator, predictions and a page."""

import csv
import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from small_log import Ended
from small_runs import Pollex, run_here

from pollex.calibration.leverage import asked_gradient, gradient, per_text
from pollex.calibration.models import NAMES, model_named
from pollex.calibration.models.network import CalibrationNetwork
from pollex.calibration.storage import load
from pollex.formats.read_tables import read_answers, read_judgments
from pollex.graphs.context import NullProgress
from pollex.measures.distributions import Predictions
from pollex.services.calibrate import AUTHORS, choice_sentences, settings_for, settings_of_network
from pollex.services.calibration_report import QUICK, Effort, as_fitted, bench_of, kept, leverages_of

JUDGES = ("ann", "bob", "=cy")
TEXTS = 40


def answer_rows(texts: range, seed: int = 0) -> list[dict[str, Any]]:
    """Two questions of three options; the second says nothing."""
    rng = np.random.default_rng(seed)
    return [
        {"text_id": f"t{text}", "question": question, "option": option + 1, "probability": round(float(p), 6) * 0.99}
        for text in texts
        for question in ("overall", "length")
        for option, p in enumerate(rng.dirichlet([0.7, 0.7, 0.7]))
    ]


def judgment_rows(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """People give the answer that the judge expects; ann one less, where there is one."""
    expected: dict[str, float] = {}
    for row in answers:
        if row["question"] == "overall":
            expected[row["text_id"]] = expected.get(row["text_id"], 0.0) + row["option"] * row["probability"]
    return [
        {
            "text_id": text,
            "question": "overall",
            "judge": judge,
            "answer": int(np.clip(round(value) - (judge == "ann"), 1, 3)),
        }
        for number, (text, value) in enumerate(expected.items())
        for judge in (JUDGES[number % 3], JUDGES[(number + 1) % 3])
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
    arguments = [folder / "answers.csv", folder / "judgments.csv", "--out", folder / "kept", "--model", "ordinal"]
    return run_here("calibrate", "fit", *arguments, *more)


def predict(tables: Path, out: Path, *more: object, answers: Path | None = None) -> Ended:
    return run_here("calibrate", "predict", tables / "kept", answers or tables / "new.csv", "--out", out, *more)


def test_what_was_left_out_is_said_and_the_exit_code_is_three(pollex: Pollex, tables: Path, tmp_path: Path) -> None:
    answers = write(tmp_path / "a.csv", answer_rows(range(TEXTS)), "t99,overall,1,-0.5", "t0,length,9,nan")
    judgments = write(
        tmp_path / "j.csv", judgment_rows(answer_rows(range(TEXTS))), "t0,overall,dee,2", "x,overall,ann,1"
    )
    arguments = (answers, judgments, "--out", tmp_path / "kept", "--model", "ordinal", "--options", "length=1,2,3")
    ended = pollex("calibrate", "fit", *arguments, "--json")
    assert ended.code == 3
    left_out = {fault["what"]: fault for fault in ended.last["left_out"]}
    assert {what: fault["count"] for what, fault in left_out.items()} == {
        "below 0": 1,
        "with an unknown option": 1,
        "without an answer that can be used": 1,
        "whose text has no answers": 1,
    }
    assert left_out["below 0"]["examples"] == [f"{answers}:242 (t99, overall, option 1: -0.5)"]
    assert [note["examples"] for note in ended.last["notes"]] == [["dee"]]
    assert "Left out: 1 probability below 0" in ended.err
    assert pollex("calibrate", "fit", *arguments).out.count("Left out") == 4


def test_settings_of_a_network_are_searched_for_and_those_of_others_are_their_own() -> None:
    assert settings_for(model_named("network"), 3, None, network=False) == {"seed": 3, "search": "random"}
    assert settings_for(model_named("best"), 3, "system", network=True) == {"seed": 3, "network": True}
    assert settings_for(model_named("ordinal"), 3, None, network=False) == {}


@pytest.mark.nightly
def test_what_a_search_found_is_told() -> None:
    rng = np.random.default_rng(0)
    X = rng.dirichlet([1, 1], 40)
    model = CalibrationNetwork(h1=2, h2=2, seeds=1, search="random", draws=1, search_seconds=0.1)
    model.fit(X, (X[:, 1] > 0.5).astype(float))
    (said,) = choice_sentences(model)
    assert said == f"Chosen: {model.search_.sentence()}"
    assert "1 setting of the network tried" in said


def test_no_model_is_called_calibrated_whatever_stands_behind_it() -> None:
    assert not [name for name in NAMES if "calibrated" in model_named(name).title]


def test_fewer_than_fifty_labels_are_not_called_calibrated(pollex: Pollex, tables: Path, tmp_path: Path) -> None:
    few = judgment_rows(answer_rows(range(TEXTS)))[:30]
    write(tmp_path / "few.csv", few)
    arguments = (tables / "answers.csv", tmp_path / "few.csv", "--out", tmp_path / "kept", "--model", "ordinal")
    ended = pollex("calibrate", "fit", *arguments)
    assert "not yet calibrated: 30 of 50 labels, 20 are missing" in ended.out
    again = pollex("calibrate", "predict", tmp_path / "kept", tables / "new.csv", "--out", tmp_path / "p.csv", "--json")
    assert again.last["calibrated"] is False
    assert "not yet calibrated" in again.err


def test_rows_that_say_the_same_again_are_no_further_labels(pollex: Pollex, tables: Path, tmp_path: Path) -> None:
    few = judgment_rows(answer_rows(range(TEXTS)))[:30]
    write(tmp_path / "thrice.csv", [*few, *few, *few])
    arguments = (tables / "answers.csv", tmp_path / "thrice.csv", "--out", tmp_path / "kept", "--model", "ordinal")
    ended = pollex("calibrate", "fit", *arguments, "--json")
    assert (ended.last["labels"], ended.last["missing_labels"], ended.last["calibrated"]) == (30, 20, False)
    assert "90 judgments, 90 of them of the main question" in ended.err
    assert "30 cases of a text judged again by the same judge: used, and no further label" in " ".join(
        ended.err.split()
    )


def test_fit_tells_what_it_stands_on(tables: Path) -> None:
    told = json.loads((tables / "fit.json").read_text("utf-8"))
    assert (told["main"], told["texts"], told["labels"], told["judges"]) == ("overall", TEXTS, 2 * TEXTS, 3)
    assert (told["calibrated"], told["missing_labels"], told["left_out"]) == (True, 0, [])


def test_predictions_follow_the_answers_and_are_distributions(pollex: Pollex, tables: Path, tmp_path: Path) -> None:
    ended = predict(tables, tmp_path / "p.jsonl", "--judge", "ann", "--judge", "nobody", "--aggregate", "max", "--json")
    assert ended.code == 0, ended.err
    assert (ended.last["texts"], ended.last["learned_from"], ended.last["strangers"]) == (10, 0, ["nobody"])
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text("utf-8").splitlines()]
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


def test_a_text_s_score_is_the_mean_over_trusted_judges_and_of_a_stranger_only_when_asked(
    tables: Path, tmp_path: Path
) -> None:
    found = {}
    for name, more in {
        "all": (),
        "trusted": [word for judge in JUDGES for word in ("--judge", judge)],
        "unknown": ("--aggregate", "unknown"),
    }.items():
        assert predict(tables, tmp_path / "p.jsonl", *more).code == 0
        found[name] = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text("utf-8").splitlines()]
    for everybody, trusted, unknown in zip(*found.values(), strict=True):
        mean = np.mean([each["expected"] for each in trusted["judges"]])
        assert everybody["expected"] == pytest.approx(trusted["expected"]) == pytest.approx(mean)
        values = [unknown[f"p_{value}"] * value for value in (1, 2, 3)]
        assert unknown["expected"] == pytest.approx(sum(values)) != pytest.approx(mean, abs=1e-6)


def test_each_question_has_a_calibrator_of_its_own(pollex: Pollex, tables: Path, tmp_path: Path) -> None:
    given = [
        row | {"question": name} for row in judgment_rows(answer_rows(range(TEXTS))) for name in ("overall", "length")
    ]
    judgments = write(tmp_path / "j.csv", given)
    fit_to = ("calibrate", "fit", tables / "answers.csv", judgments, "--model", "ordinal", "--main")
    for main, more in {"overall": [], "length": ["--main-only"]}.items():
        fitted = pollex(*fit_to, main, "--out", tmp_path / main, *more, "--json")
        assert fitted.last["questions"] == [main] if more else ["overall", "length"]
    asked = ("calibrate", "predict", tmp_path / "overall", tables / "new.csv", "--out", tmp_path / "p.jsonl")
    assert pollex(*asked, "--question", "all", "--json").last["questions"] == ["overall", "length"]
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text("utf-8").splitlines()]
    alone = ("calibrate", "predict", tmp_path / "length", tables / "new.csv", "--out", tmp_path / "l.jsonl")
    assert pollex(*alone).code == 0
    assert rows[10:] == [json.loads(line) for line in (tmp_path / "l.jsonl").read_text("utf-8").splitlines()]


def test_rare_settings_are_the_networks_alone() -> None:
    assert settings_of_network(model_named("network"), {"recipe": "authors", "h1": 5}) == {
        **AUTHORS, "h1": 5, "recipe": "authors", "search": None
    }  # fmt: skip
    assert settings_of_network(model_named("ordinal"), {}) == {}


def test_the_three_formats_hold_the_same(pollex: Pollex, tables: Path, tmp_path: Path) -> None:
    for ending in ("jsonl", "csv", "parquet"):
        assert predict(tables, tmp_path / f"p.{ending}", "--judge", "=cy").code == 0
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text("utf-8").splitlines()]
    with (tmp_path / "p.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    table = duckdb.sql(f"SELECT * FROM '{tmp_path}/p.parquet'")
    columns, stored = table.columns, table.fetchall()
    assert [dict(zip(columns, row, strict=True)) for row in stored] == lines
    assert [float(row["expected"]) for row in cells] == [row["expected"] for row in lines]
    assert [json.loads(row["judges"]) for row in cells] == [row["judges"] for row in lines]


def test_answers_without_order_have_no_expected_one(pollex: Pollex, tables: Path, tmp_path: Path) -> None:
    kind = ("--out", tmp_path / "kept", "--model", "judge_mean", "--nominal", "overall")
    assert pollex("calibrate", "fit", tables / "answers.csv", tables / "judgments.csv", *kind).code == 0
    arguments = ("calibrate", "predict", tmp_path / "kept", tables / "new.csv", "--out", tmp_path / "p.parquet")
    ended = pollex(*arguments, "--judge", "ann")
    assert ended.code == 0, ended.err
    found = duckdb.sql(f"SELECT expected, variance, p_1 + p_2 + p_3, judges FROM '{tmp_path}/p.parquet'").fetchall()
    assert {(expected, variance) for expected, variance, _, _ in found} == {(None, None)}
    assert all(total == pytest.approx(1) and judges[0]["expected"] is None for _, _, total, judges in found)
    refused = pollex(*arguments, "--aggregate", "max")
    assert (refused.code, "have no order" in refused.err) == (2, True)


def test_a_report_searches_in_each_fold_for_a_share_of_the_time(tables: Path) -> None:
    table = read_answers(tables / "answers.csv")
    judged = read_judgments(tables / "judgments.csv", table)
    made, groups, unlike = as_fitted(model_named("network")(search="random", search_seconds=50.0), None, table, judged)
    assert (made.get_params()["search_seconds"], groups) == (10.0, None)
    assert "searched for 10 seconds only" in unlike


def test_ids_that_a_spreadsheet_would_run_are_guarded_in_csv(pollex: Pollex, tables: Path, tmp_path: Path) -> None:
    rows = [row | {"text_id": "=1+1"} for row in answer_rows(range(1))]
    assert predict(tables, tmp_path / "p.csv", answers=write(tmp_path / "new.csv", rows)).code == 0
    assert (tmp_path / "p.csv").read_text("utf-8").splitlines()[1].startswith("'=1+1,")


def test_texts_that_were_learnt_from_are_known_again(pollex: Pollex, tables: Path, tmp_path: Path) -> None:
    ended = predict(tables, tmp_path / "p.csv", "--json", answers=tables / "answers.csv")
    assert ended.last["learned_from"] == TEXTS


def test_long_codes_that_begin_alike_have_a_column_each(pollex: Pollex, tmp_path: Path) -> None:
    codes = ["1000001", "1000002", "0.5"]
    texts = range(6)
    asked = [
        ("text_id", "question", "option", "probability"),
        *((t, "kind", code, 0.3) for t in texts for code in codes),
    ]
    given = [("text_id", "question", "judge", "answer"), *((t, "kind", "ann", codes[t % 3]) for t in texts)]
    for name, rows in (("a.csv", asked), ("j.csv", given)):
        with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
    tables = (tmp_path / "a.csv", tmp_path / "j.csv")
    fitted = ("--out", tmp_path / "kept", "--main", "kind", "--nominal", "kind", "--model", "constant")
    assert pollex("calibrate", "fit", *tables, *fitted).code == 0
    predict(tmp_path, tmp_path / "p.csv", answers=tmp_path / "a.csv")
    with (tmp_path / "p.csv").open(encoding="utf-8") as file:
        row = next(csv.DictReader(file))
    assert sum(float(row[f"p_{code}"]) for code in codes) == pytest.approx(1)


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_judge_whose_name_is_no_text_is_predicted_for_too(tables: Path, tmp_path: Path, ending: str) -> None:
    ended = predict(tables, tmp_path / f"p.{ending}", "--judge", "caf\udce9")
    assert ended.code == 0, ended.err
    assert (tmp_path / f"p.{ending}").exists()


@pytest.mark.parametrize(
    "known",
    [
        "",
        "[]",
        '{"labels": "many", "text_hashes": 5, "arrays_sha256": "SHA"}',
        '{"labels": -1, "text_hashes": [1], "arrays_sha256": "SHA"}',
    ],
)
def test_a_calibrator_without_its_record_of_training_predicts_all_the_same(
    pollex: Pollex, tables: Path, tmp_path: Path, known: str
) -> None:
    shutil.copytree(tables / "kept", tmp_path / "kept")
    record = tmp_path / "kept" / "training.json"
    record.write_text(known.replace("SHA", json.loads(record.read_text())["arrays_sha256"]), encoding="utf-8")
    ended = predict(tmp_path, tmp_path / "p.csv", "--json", answers=tables / "answers.csv")
    assert (ended.code, ended.last["learned_from"], ended.last["calibrated"]) == (0, None, False)
    assert "it isn't known which texts it was fitted on" in ended.err


def test_the_command_that_is_recommended_can_be_pasted(pollex: Pollex, tables: Path, tmp_path: Path) -> None:
    answers, judgments = shutil.copy(tables / "answers.csv", tmp_path / "my answers.csv"), tables / "judgments.csv"
    ended = pollex("calibrate", "fit", answers, judgments, "--out", tmp_path / "a & b", "--model", "constant")
    said = ended.out.partition("Measure it next: ")[2]
    assert shlex.split(said)[2:] == ["report", str(tmp_path / "a & b"), str(answers), str(judgments)]


def test_many_labels_of_four_texts_have_no_interval_and_are_told_why(pollex: Pollex, tmp_path: Path) -> None:
    rows = [
        {"text_id": f"t{n}", "question": "overall", "option": o, "probability": 0.5} for n in range(4) for o in (1, 2)
    ]
    given = [
        {"text_id": f"t{n}", "question": "overall", "judge": f"j{j}", "answer": 1 + (n + j) % 2}
        for n in range(4)
        for j in range(15)
    ]
    tables = write(tmp_path / "answers.csv", rows), write(tmp_path / "judgments.csv", given)
    assert pollex("calibrate", "fit", *tables, "--out", tmp_path / "kept", "--model", "constant").code == 0
    ended = pollex("calibrate", "report", tmp_path / "kept", *tables, "--out", tmp_path / "page.html")
    assert "No interval: fewer than 5 texts are behind the figures." in ended.out
    assert "too few" not in ended.out  # 60 labels


def test_the_record_of_another_calibrator_vouches_for_none(pollex: Pollex, tables: Path, tmp_path: Path) -> None:
    few = judgment_rows(answer_rows(range(12)))
    arguments = (tables / "answers.csv", write(tmp_path / "few.csv", few), "--out", tmp_path / "kept")
    assert pollex("calibrate", "fit", *arguments, "--model", "ordinal").code == 0
    assert "not yet calibrated: 24 of 50" in predict(tmp_path, tmp_path / "p.csv", answers=tables / "new.csv").out
    shutil.copy(tables / "kept" / "training.json", tmp_path / "kept")  # as one does whose fit ended last
    ended = predict(tmp_path, tmp_path / "p.csv", "--json", answers=tables / "answers.csv")
    assert (ended.last["learned_from"], ended.last["calibrated"]) == (None, False)
    assert "calibrated on" not in ended.err


def test_a_model_chosen_by_leaving_groups_out_is_reported_likewise(
    pollex: Pollex, tables: Path, tmp_path: Path
) -> None:
    rows = [row | {"system": f"s{int(row['text_id'][1:]) % 3}"} for row in answer_rows(range(TEXTS))]
    answers = write(tmp_path / "answers.csv", rows)
    arguments = (answers, tables / "judgments.csv", "--out", tmp_path / "kept")
    fitted = pollex("calibrate", "fit", *arguments, "--shift", "system", "--json")
    assert fitted.code == 0, fitted.err
    assert "3 groups" in fitted.last["choice"][0]
    model, table = load(tmp_path / "kept"), read_answers(answers)
    judged = read_judgments(tables / "judgments.csv", table)
    made, groups, unlike = as_fitted(model, "system", table, judged)
    assert (made.get_params()["shift"], unlike) == (True, "")
    assert groups is not None
    assert groups[:4].tolist() == [0, 1, 2, 0]
    made, groups, unlike = as_fitted(model, "topic", table, judged)
    assert (made.get_params()["shift"], groups) == (False, None)
    assert "no column 'topic' of three groups" in unlike


@pytest.mark.nightly
def test_report_measures_beside_simpler_models_and_writes_a_page(pollex: Pollex, tables: Path, tmp_path: Path) -> None:
    arguments = (tables / "kept", tables / "answers.csv", tables / "judgments.csv", "--out", tmp_path / "r.html")
    ended = pollex("calibrate", "report", *arguments, "--quick", "--json")
    assert ended.code == 0, ended.err
    told, others = ended.last, ended.last["others"]
    assert (told["labels"], told["calibrated"], told["learned_from"]) == (2 * TEXTS, True, TEXTS)
    assert others["constant"]["behind"]["low"] > 0  # there is something to learn
    gap = others["constant"]["figures"]["log_loss"]["value"] - told["figures"]["log_loss"]["value"]
    assert others["constant"]["behind"]["value"] == pytest.approx(gap)
    measured = [figure for each in (told, *others.values()) for figure in (each["figures"] or {}).values()]
    assert len(measured) > 50
    assert all(figure["undefined"] or figure["low"] <= figure["value"] <= figure["high"] for figure in measured)
    assert told["gains"]["overall"]["low"] > 0 > told["gains"]["length"]["low"]
    by_judge = told["subgroups"]["judge"]
    assert list(by_judge) == ["=cy", "ann", "bob"]
    assert sum(figures["rmse"]["n"] for figures in by_judge.values()) == 2 * TEXTS
    whole = sum(figures["log_loss"]["value"] * figures["log_loss"]["n"] for figures in by_judge.values())
    assert whole / (2 * TEXTS) == pytest.approx(told["figures"]["log_loss"]["value"])
    losses = [point["log_loss"] for point in told["learning"]]
    assert losses[-1] < losses[0]
    assert "the kept one as it is" not in others  # it learnt from these texts
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "judge =cy, " in page
    assert "<script" not in page
    assert "//" not in page


def test_the_leverage_on_the_page_is_the_kept_calibrators(tables: Path) -> None:
    model, table = load(tables / "kept"), read_answers(tables / "answers.csv")
    bench = bench_of(table, read_judgments(tables / "judgments.csv", table), 0, None, QUICK, NullProgress())
    (found,) = leverages_of(model, bench)
    on_main, on_length = gradient(model, table.X), asked_gradient(model.questionnaire_, table.X, "length")
    assert found.mean == pytest.approx(np.nanmean(per_text(on_main, on_length)))


def test_intervals_of_smece_are_rougher_where_there_are_many_answers(tables: Path) -> None:
    table = read_answers(tables / "answers.csv")
    judged = read_judgments(tables / "judgments.csv", table)
    few = bench_of(table, judged, 0, None, Effort(smece=100, smece_beside=20), NullProgress())
    assert (few.smece_resamples(own=True), few.smece_resamples(own=False)) == (100, 20)
    scales = tuple(replace(scale, values=tuple(range(11))) for scale in few.questions.scales)
    many = replace(few, questions=replace(few.questions, scales=scales))
    assert (many.smece_resamples(own=True), many.smece_resamples(own=False)) == (20, 0)


def test_texts_that_are_new_to_the_kept_calibrator_measure_it_as_it_is(
    pollex: Pollex, tables: Path, tmp_path: Path
) -> None:
    rows = answer_rows(range(200, 220), seed=2)
    answers, judgments = write(tmp_path / "a.csv", rows), write(tmp_path / "j.csv", judgment_rows(rows))
    table = read_answers(answers, scales=load(tables / "kept").questionnaire_.asked)
    judged = read_judgments(judgments, table, questionnaire=load(tables / "kept").questionnaire_)
    model = load(tables / "kept")
    bench = bench_of(table, judged, 0, None, QUICK, NullProgress())
    given = bench.given
    own = Predictions(np.full((len(given), 3), 1 / 3), given.answer, given.row, (1.0, 2.0, 3.0))
    (found,) = kept(bench, model, own, seen=0)
    assert kept(bench, model, own, seen=1) == []
    assert kept(bench, model, own, seen=None) == []  # it may have learnt from all of them
    proba = model.predict_proba(table.X[given.row], given.names())
    loss = -np.log(proba[np.arange(len(given)), given.answer]).mean()
    assert found.assessment is not None
    assert found.assessment.log_loss.value == pytest.approx(loss)
    assert found.behind is not None
    assert found.behind.value == pytest.approx(loss - np.log(3))
