"""The benchmark on tables of the released shape that are made up here: nothing of the real data is needed."""

import argparse
import csv
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from pollex.calibration.features import inputs_of
from pollex.measures.distributions import Predictions, assess

QUESTIONS = ("Q0", *(f"Q{number}" for number in range(1, 9)))
JUDGES = ("3", "7", "11")


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """The module `llm_rubric`, imported as a script finds its neighbours."""
    import llm_rubric

    return llm_rubric


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four tables; judges 3, 7 and 11 agree with the LLM more or less, and 11 is strict."""
    folder = tmp_path_factory.mktemp("released")
    rng = np.random.default_rng(0)
    for which, texts in (
        ("synthetic", [f"V{n % 2 + 1}_{n}" for n in range(30)]),
        ("real", [f"{n:024x}" for n in range(12)]),
    ):
        answers, sheets = [], []
        for number, text in enumerate(texts):
            quality = rng.normal()
            for question in QUESTIONS:
                options = 3 if question == "Q8" else 4
                logits = -((np.arange(options) - 1.5 - quality) ** 2) + rng.normal(0, 0.3, options)
                proba = 0.98 * np.exp(logits) / np.exp(logits).sum()
                columns = {f"answer{k + 1}_prob": proba[k] if k < options else 0.0 for k in range(4)}
                answers.append({"text_id": text, "criterion": question, "sample_llm": 1, **columns})
            for judge in JUDGES if which == "synthetic" else (JUDGES[number % 3],):
                given = {
                    q: int(np.clip(np.round(2.5 + quality + rng.normal(0, 0.7) - (judge == "11")), 1, 3 + (q != "Q8")))
                    for q in QUESTIONS
                }
                system = {} if which == "synthetic" else {"dialogue_system": number % 3}
                sheets.append({**system, "text_id": text, **given, "annotator_id": judge})
        if which == "synthetic":
            sheets[0]["Q4"] = ""  # missing
            sheets[1]["Q0"] = 0  # says nothing about the overall question
            sheets[2]["Q3"] = 0  # does not apply
            sheets.append({**sheets[3], "text_id": "V9_unanswered"})
        for name, rows in (("llm", answers), ("human", sheets)):
            with (folder / f"{which}-{name}.tsv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(rows[0]), delimiter="\t")
                writer.writeheader()
                writer.writerows(rows)
    return folder


@pytest.fixture(scope="module")
def material(bench: ModuleType, tables: Path):  # type: ignore[no-untyped-def]
    return bench.Material.read(tables)


def test_sheets_that_are_incomplete_or_without_answers_are_left_out(material) -> None:  # type: ignore[no-untyped-def]
    sheets = material.synthetic
    assert (len(sheets), len(material.real)) == (88, 12)
    assert sheets.X.shape == (88, 35)
    assert np.isnan(sheets.answers).sum() == 1
    assert sheets.main.tolist() == [int(value) - 1 for value in sheets.answers[:, 0]]
    assert set(sheets.system) == {"V1", "V2"}
    assert set(material.real.system) == {"0", "1", "2"}
    assert not sheets.questions.scale("Q8").ordinal


def test_a_dialogue_is_in_one_fold_only(bench: ModuleType, material) -> None:  # type: ignore[no-untyped-def]
    from llm_rubric_data import folds_of, systems_of

    folds = folds_of(material.synthetic, 1)
    assert sorted(np.concatenate(folds).tolist()) == list(range(88))
    dialogues = [set(material.synthetic.dialogue[rows].tolist()) for rows in folds]
    assert sum(map(len, dialogues)) == len(set.union(*dialogues))
    assert [len(rows) for rows in systems_of(material.synthetic)] == [43, 45]


def test_the_oracle_sees_the_judges_own_answers_but_not_that_to_q0(bench: ModuleType, material) -> None:  # type: ignore[no-untyped-def]
    from llm_rubric_data import with_own_answers

    sheets = with_own_answers(material.synthetic, llm=False)
    assert sheets.X.shape == (88, 7 * 4 + 3)
    assert [scale.question for scale in sheets.questions.asked] == [f"Q{n} by the judge" for n in range(1, 9)]
    # The sheet with a question that does not apply is the first that is left; its block is zeros.
    assert sheets.X[0].sum() == 7
    assert (sheets.X[1:].sum(axis=1) == 8).all()
    assert (sheets.X[1:, :4] @ np.arange(1, 5) == sheets.answers[1:, 1]).all()
    both = with_own_answers(material.synthetic)
    assert (both.X[:, :35] == material.synthetic.X).all()
    assert (both.X[:, 35:] == sheets.X).all()


def test_the_depersonalised_oracle_sees_the_mean_of_the_others_alone(bench: ModuleType, material) -> None:  # type: ignore[no-untyped-def]
    from llm_rubric_data import with_others_answers

    sheets = with_others_answers(material.synthetic)
    row = 10
    others = np.flatnonzero(material.synthetic.dialogue == material.synthetic.dialogue[row])
    others = others[others != row]
    expected = np.mean(material.synthetic.answers[others, 1])
    assert sheets.X[row, :4] @ np.arange(1, 5) == pytest.approx(expected)
    assert np.isnan(with_others_answers(material.real).X).all()


def test_without_a_question_neither_its_answers_nor_its_judgments_are_seen(bench: ModuleType, material) -> None:  # type: ignore[no-untyped-def]
    from llm_rubric_data import without_question

    less = without_question(material.synthetic, "Q8")
    assert less.X.shape == (88, 32)
    assert less.answers.shape == (88, 8)
    blind = without_question(material.synthetic, "Q0")
    assert blind.X.shape == (88, 31)
    assert (material.synthetic.X[:, 4:] == blind.X).all()
    assert blind.main.tolist() == material.synthetic.main.tolist()


def test_scores_alone_are_one_input_a_question(bench: ModuleType, material) -> None:  # type: ignore[no-untyped-def]
    from llm_rubric_data import with_scores_alone

    questions = [f"Q{n}" for n in range(9)]
    for sheets, of_q8 in ((material.synthetic, 3), (with_scores_alone(material.synthetic), 1)):
        names = inputs_of(sheets.X, sheets.questions).names()
        assert [names.count(question) for question in questions] == [1] * 8 + [of_q8]


def test_a_row_averages_its_runs(bench: ModuleType, material) -> None:  # type: ignore[no-untyped-def]
    from llm_rubric_runs import computed
    from llm_rubric_tables import Row

    done = [computed(bench.Task("constant", "cv", split=split), material) for split in (1, 0)]
    row = Row.of(done)
    each = [assess(one.predictions).rmse.value for one in done]
    assert row.mean("rmse") == pytest.approx(np.mean(each))
    assert row.deviation("rmse") == pytest.approx(np.std(each, ddof=1))
    assert row.interval["rmse"].low < row.mean("rmse") < row.interval["rmse"].high
    assert row.against(row) is None


def test_random_answers_have_no_log_loss(bench: ModuleType, material) -> None:  # type: ignore[no-untyped-def]
    from llm_rubric_runs import computed
    from llm_rubric_tables import Row

    row = Row.of([computed(bench.Task("random", "cv"), material)])
    assert row.mean("log_loss") is None
    assert row.mean("rmse") is not None


def test_targets_are_met_missed_or_not_measured(bench: ModuleType) -> None:
    from llm_rubric_targets import Target

    assert str(Target("x", 0.4, True, 0.4)).startswith("met")
    assert str(Target("x", 0.4, True, 0.3999)).startswith("missed")
    assert str(Target("x", 0.4, False, 0.3999)).startswith("met")
    assert str(Target("x", 0.4, False, None)).startswith("not measured")


def test_the_checklist_reads_the_rows_that_the_issue_names(bench: ModuleType) -> None:
    from llm_rubric_runs import Done, Task
    from llm_rubric_tables import rows_of

    rng = np.random.default_rng(0)
    answer = rng.integers(4, size=50)

    def done(key: str, where: str, right: float, seed: int = 0) -> Done:
        proba = np.full((50, 4), (1 - right) / 3)
        proba[np.arange(50), answer] = right
        return Done(Task(key, where, seed), Predictions(proba, answer, np.arange(50), (1.0, 2.0, 3.0, 4.0)))

    found = [done("chosen", "cv", 0.9), done("oracle", "cv", 0.3)]
    found += [done("chosen under shift", "real", right, seed) for seed, right in enumerate((0.97, 0.6))]
    found += [done("ridge", "systems", 0.5), done("scales", "systems", 0.6), done("scales", "real", 0.7)]
    reached = {target.what: target for target in bench.targets(rows_of(found))}
    assert reached["synthetic CV, chosen in each fold: log_loss"].reached == pytest.approx(-np.log(0.9))
    assert reached["real, chosen leaving a system out: log_loss"].reached == pytest.approx(-np.log(0.97 * 0.6) / 2)
    spread = reached["real, chosen leaving a system out: sd of log_loss over seeds"]
    assert spread.reached == pytest.approx(np.std([-np.log(0.97), -np.log(0.6)], ddof=1))
    assert not spread.met
    first = reached["real, ordinal, + scales, first there: log_loss"]
    assert first.reached == pytest.approx(-np.log(0.7))
    assert reached["synthetic CV, oracle: pearson"].met


def test_every_table_is_printed_from_what_was_computed(bench: ModuleType, material) -> None:  # type: ignore[no-untyped-def]
    from llm_rubric_runs import computed

    tasks = [
        *(bench.Task(key, where) for key in ("expected", "judge", "ordinal") for where in ("cv", "systems", "real")),
        bench.Task("oracle isotonic", "cv"),
        bench.Task("ordinal: without Q3", "cv"),
        bench.Task("ordinal", "curve", repeats=1),
    ]
    text = bench.in_words([computed(task, material) for task in tasks], material)
    assert "88 sheets of 30 synthetic dialogues by 3 judges; 12 sheets of 12 real dialogues by 3 judges" in text
    assert "0.856 0.182 0.217 0.168" in text
    parts = dict(part.split("\n", 1) for part in text.split("\n\n") if "\n" in part)
    for title, titles in (
        (
            "Table 1. Q0 of synthetic dialogues, cross-validation",
            ["expected LLM Q0", "judge's mean", "ordinal, + scales"],
        ),
        ("Table 2. Upper bounds, synthetic", ["  that, then isotonic per judge"]),
        ("Table 2. Ablations of the ordinal model, synthetic", ["all of it", "without Q3"]),
        ("Table 3. Calibration error by answer, real", ["expected LLM Q0", "judge's mean", "ordinal, + scales"]),
    ):
        lines = parts[title].splitlines()[1:]
        assert len(lines) == len(titles), title
        assert all(line.startswith(start) for line, start in zip(lines, titles, strict=True)), title
    assert len(parts["Learning curve, synthetic"].splitlines()) == 11
    assert "not measured  synthetic CV, chosen in each fold: pearson" in parts["Targets"]


def test_the_plan_computes_each_row_where_it_can_be_measured(bench: ModuleType) -> None:
    asked = argparse.Namespace(seeds=10, splits=3, repeats=5, quick=False)
    tasks = bench.planned(asked)
    assert len(set(tasks)) == len(tasks)
    runs = {
        (key, where): sum((t.key, t.where) == (key, where) for t in tasks)
        for t in tasks
        for key, where in [(t.key, t.where)]
    }
    assert runs["network", "cv"] == runs["network", "real"] == runs["chosen under shift", "real"] == 10
    assert (runs["ordinal", "cv"], runs["chosen", "cv"], runs["authors", "cv"]) == (3, 10, 10)
    assert runs["ordinal", "real"] == 1
    assert not {("others", "real"), ("chosen once", "real"), ("chosen under shift", "cv")} & runs.keys()
    assert {task.split for task in tasks if task.key == "network" and task.where == "cv"} == {0, 1, 2}
    assert {key for key, _ in runs} == set(bench.everything())


def test_what_is_chosen_once_is_fitted_in_every_fold_and_not_chosen_again(bench: ModuleType, material) -> None:  # type: ignore[no-untyped-def]
    from llm_rubric_methods import Fixed, Method, chosen_once, kind

    settings = {"candidates": [("constant", {}), ("judge_mean", {"strength": 2.0})]}
    method = Method("", kind("best", **settings))
    once = chosen_once(method, material.synthetic, 0)
    weights = method.fitted(material.synthetic, 0).choice_.weights
    assert once.make(0).members == [settings["candidates"][place] for place in weights]
    both = Method("", lambda seed: Fixed(settings["candidates"], [0.25, 0.75]))
    few = material.synthetic.part(np.arange(40))
    each = [Method("", kind(n, **s)).predict(few, material.real, 0)[0] for n, s in settings["candidates"]]
    assert both.predict(few, material.real, 0)[0] == pytest.approx(0.25 * each[0] + 0.75 * each[1])


def test_each_setting_is_tried_on_systems_that_it_has_not_seen(bench: ModuleType, material) -> None:  # type: ignore[no-untyped-def]
    import llm_rubric_settings
    from llm_rubric_data import systems_of, with_scores_alone

    from pollex.calibration.models import model_named

    settings = {"shared": 30.0, "intercepts": 2.0, "scales": None, "slopes": None}
    tried = llm_rubric_settings.tried(settings, material)
    sheets = with_scores_alone(material.synthetic)
    rows = systems_of(sheets)[0]
    others = sheets.without(rows)
    model = model_named("ordinal")(**settings).fit(others.X, others.said, questions=others.questions)
    alone = model.predict_proba(sheets.X[rows], [sheets.judges[row] for row in rows])
    np.testing.assert_allclose(tried.left_out.proba[rows], alone, atol=1e-6)
    assert tried.real.n == len(material.real)


def test_settings_are_close_by_the_error_of_their_difference_over_dialogues(bench: ModuleType) -> None:
    from llm_rubric_settings import Tried, close, in_words

    def with_chances(*of_first: float, rightly: bool = True) -> Tried:
        proba, text = np.array([[p, 1 - p] for p in of_first]), np.arange(len(of_first))
        left_out = Predictions(proba, np.zeros(len(text), dtype=int), text, (1.0, 2.0))
        elsewhere = Predictions(proba, (text + (not rightly)) % 2, text, (1.0, 2.0))
        return Tried({}, left_out, assess(elsewhere, smooth=False))

    best = with_chances(0.81, 0.79, 0.81, 0.79, rightly=False)
    level = with_chances(0.9, 0.7, 0.9, 0.7)  # as much better as worse: √(.9 × .7) is about √(.81 × .79)
    behind = with_chances(0.7, 0.6, 0.7, 0.6)  # worse each time
    assert close([behind, level, best], 1) == [1, 2]
    assert close([behind, best], 100) == [0, 1]
    table = in_words([best, level, behind]).splitlines()
    assert [line.split()[-3:] for line in table[-3:]] == [["1", "of", "2"], ["1", "of", "2"], ["2", "of", "3"]]
    assert "-1.000, 0.000, 1.000" in table[-2]
