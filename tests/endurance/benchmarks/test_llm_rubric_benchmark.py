"""The benchmark on tables of the released shape that are made up here: nothing of the real data is needed."""

import argparse
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from pollex.measures.distributions import Predictions


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """The module `llm_rubric`, imported as a script finds its neighbours."""
    import llm_rubric

    return llm_rubric


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from llm_rubric_data import made_tables

    return made_tables(tmp_path_factory.mktemp("released"))


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


def test_the_oracle_sees_the_judges_own_answers_but_not_that_to_q0(
    bench: ModuleType, material
) -> None:  # type: ignore[no-untyped-def]
    from llm_rubric_data import with_own_answers

    sheets = with_own_answers(material.synthetic, llm=False)
    assert sheets.X.shape == (88, 7 * 4 + 3)
    assert [scale.question for scale in sheets.questions.asked] == [
        f"Q{n} by the judge" for n in range(1, 9)
    ]
    # The sheet with a question that does not apply is the first that is left; its block is zeros.
    assert sheets.X[0].sum() == 7
    assert (sheets.X[1:].sum(axis=1) == 8).all()
    assert (sheets.X[1:, :4] @ np.arange(1, 5) == sheets.answers[1:, 1]).all()
    both = with_own_answers(material.synthetic)
    assert (both.X[:, :35] == material.synthetic.X).all()
    assert (both.X[:, 35:] == sheets.X).all()


def test_the_depersonalised_oracle_sees_the_mean_of_the_others_alone(
    bench: ModuleType, material
) -> None:  # type: ignore[no-untyped-def]
    from llm_rubric_data import with_others_answers

    sheets = with_others_answers(material.synthetic)
    row = 10
    others = np.flatnonzero(material.synthetic.dialogue == material.synthetic.dialogue[row])
    others = others[others != row]
    expected = np.mean(material.synthetic.answers[others, 1])
    assert sheets.X[row, :4] @ np.arange(1, 5) == pytest.approx(expected)
    assert np.isnan(with_others_answers(material.real).X).all()


def test_the_checklist_reads_the_rows_that_the_issue_names(bench: ModuleType) -> None:
    from llm_rubric_runs import Done, Task
    from llm_rubric_tables import rows_of

    rng = np.random.default_rng(0)
    answer = rng.integers(4, size=50)

    def done(key: str, where: str, right: float, seed: int = 0) -> Done:
        proba = np.full((50, 4), (1 - right) / 3)
        proba[np.arange(50), answer] = right
        return Done(
            Task(key, where, seed), Predictions(proba, answer, np.arange(50), (1.0, 2.0, 3.0, 4.0))
        )

    found = [done("chosen", "cv", 0.9), done("oracle", "cv", 0.3)]
    found += [
        done("chosen under shift", "real", right, seed) for seed, right in enumerate((0.97, 0.6))
    ]
    found += [
        done("ridge", "systems", 0.5),
        done("scales", "systems", 0.6),
        done("scales", "real", 0.7),
    ]
    reached = {target.what: target for target in bench.targets(rows_of(found))}
    assert reached["synthetic CV, chosen in each fold: log_loss"].reached == pytest.approx(
        -np.log(0.9)
    )
    assert reached["real, chosen leaving a system out: log_loss"].reached == pytest.approx(
        -np.log(0.97 * 0.6) / 2
    )
    spread = reached["real, chosen leaving a system out: sd of log_loss over seeds"]
    assert spread.reached == pytest.approx(np.std([-np.log(0.97), -np.log(0.6)], ddof=1))
    assert not spread.met
    first = reached["real, ordinal, + scales, first there: log_loss"]
    assert first.reached == pytest.approx(-np.log(0.7))
    assert reached["synthetic CV, oracle: pearson"].met


def test_every_table_is_printed_from_what_was_computed(bench: ModuleType, material) -> None:  # type: ignore[no-untyped-def]
    from llm_rubric_runs import computed

    tasks = [
        *(
            bench.Task(key, where)
            for key in ("expected", "judge", "ordinal")
            for where in ("cv", "systems", "real")
        ),
        bench.Task("oracle isotonic", "cv"),
        bench.Task("ordinal: without Q3", "cv"),
        bench.Task("ordinal", "curve", repeats=1),
    ]
    text = bench.in_words([computed(task, material) for task in tasks], material)
    assert (
        "88 sheets of 30 synthetic dialogues by 3 judges; 12 sheets of 12 real dialogues by 3 judges"
        in text
    )
    assert "0.856 0.182 0.217 0.168" in text
    parts = dict(part.split("\n", 1) for part in text.split("\n\n") if "\n" in part)
    for title, titles in (
        (
            "Table 1. Q0 of synthetic dialogues, cross-validation",
            ["expected LLM Q0", "judge's mean", "ordinal, + scales"],
        ),
        ("Table 2. Upper bounds, synthetic", ["  that, then isotonic per judge"]),
        ("Table 2. Ablations of the ordinal model, synthetic", ["all of it", "without Q3"]),
        (
            "Table 3. Calibration error by answer, real",
            ["expected LLM Q0", "judge's mean", "ordinal, + scales"],
        ),
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
    assert (
        runs["network", "cv"] == runs["network", "real"] == runs["chosen under shift", "real"] == 10
    )
    assert (runs["ordinal", "cv"], runs["chosen", "cv"], runs["authors", "cv"]) == (3, 10, 10)
    assert runs["ordinal", "real"] == 1
    assert (
        not {("others", "real"), ("chosen once", "real"), ("chosen under shift", "cv")}
        & runs.keys()
    )
    assert {task.split for task in tasks if task.key == "network" and task.where == "cv"} == {
        0,
        1,
        2,
    }
    assert {key for key, _ in runs} == set(bench.everything())


def test_what_is_chosen_once_is_fitted_in_every_fold_and_not_chosen_again(
    bench: ModuleType, material
) -> None:  # type: ignore[no-untyped-def]
    from llm_rubric_methods import Fixed, Method, chosen_once, kind

    settings = {"candidates": [("constant", {}), ("judge_mean", {"strength": 2.0})]}
    method = Method("", kind("best", **settings))
    once = chosen_once(method, material.synthetic, 0)
    weights = method.fitted(material.synthetic, 0).choice_.weights
    assert once.make(0).members == [settings["candidates"][place] for place in weights]
    both = Method("", lambda seed: Fixed(settings["candidates"], [0.25, 0.75]))
    few = material.synthetic.part(np.arange(40))
    each = [
        Method("", kind(n, **s)).predict(few, material.real, 0)[0]
        for n, s in settings["candidates"]
    ]
    assert both.predict(few, material.real, 0)[0] == pytest.approx(0.25 * each[0] + 0.75 * each[1])
