"""Figures of a calibration report: densities of predicted scores, by group, and what stands in for a slow model."""

from pathlib import Path

import numpy as np
import pytest

from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.models import get_model_class, get_model_name
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.conversations.conversation import Conversation
from pollex.graphs.context import NullProgress
from pollex.measures.arrays import Floats
from pollex.measures.distributions import Predictions
from pollex.rooms.questionnaire.calibration.models.judge_mean import JudgeMean
from pollex.rooms.questionnaire.formats.read_tables import read_answers, read_judgments
from pollex.rooms.questionnaire.reports.calibration import PredictedScores
from pollex.rooms.questionnaire.services.calibration_report import (
    QUICK_EFFORT,
    choose_quick_model,
    measure_subgroups,
    predict_subsets,
    split_bench,
)

KIND = Scale("kind", (1.0, 2.0), ordinal=False, asked=False)
ASKED = Questionnaire((Scale("clear", (1.0, 2.0, 3.0)), KIND), "clear")
NAMES = [f"t{number}" for number in range(60)]
X = np.random.default_rng(0).dirichlet(np.ones(3), 60)
BOTH = ["a", "b"] * 30


def fitted(y: Floats) -> OrdinalMixedEffects:
    return OrdinalMixedEffects().fit(X, y, BOTH, ASKED)


def test_the_lowest_of_all_and_of_each_subset_stand_below_a_density_of_area_one() -> None:
    model = fitted(np.clip(np.rint(X @ [1, 2, 3]), 1, 3))
    every = model.predict_for(X)
    lowest = NAMES[int(every.argmin())]
    logs = {
        lowest: Conversation.model_validate(
            {"id": lowest, "turns": [{"role": "user", "content": "why?"}]}
        )
    }
    nominal = JudgeMean().fit(
        X,
        [(0, "kind", "a", 1.0), (1, "kind", "b", 2.0)],
        questions=Questionnaire(ASKED.scales, "kind"),
    )
    groups = {"system": ["x", "y"] * 30, "alone": ["z"] * 60}
    models = {"clear": model, "kind": nominal}
    found = [*predict_subsets(models, X, NAMES, groups, logs, np.random.default_rng(0))]
    assert [(one.question, one.column, one.group) for one in found] == [
        ("clear", "", ""),
        ("clear", "system", "x"),
        ("clear", "system", "y"),
    ]
    for one, part in zip(found, (slice(None), slice(0, None, 2), slice(1, None, 2)), strict=True):
        assert sum(one.density) * (one.mesh[1] - one.mesh[0]) == pytest.approx(1, abs=0.02)
        assert (np.array(one.low) <= np.array(one.high)).all()
        assert one.mean.value == pytest.approx(every[part].mean())
        ordered = np.array(NAMES)[part][np.argsort(every[part])]
        assert [text.id for text in one.tail] == ordered[: len(one.tail)].tolist()
        assert [bool(text.turns) for text in one.tail] == [text.id == lowest for text in one.tail]


def test_judges_who_differ_widen_the_interval_of_a_mean_and_few_texts_have_none() -> None:
    def first(y: Floats, texts: int = 60) -> PredictedScores:
        return next(
            predict_subsets(
                {"clear": fitted(y)}, X[:texts], NAMES[:texts], {}, {}, np.random.default_rng(0)
            )
        )

    differing = np.array([1.0, 3.0] * 30)
    alike, apart = (first(y).mean for y in (np.clip(np.rint(X @ [1, 2, 3]), 1, 3), differing))
    assert alike.high - alike.low < apart.high - apart.low  # type: ignore[operator]
    few = first(differing, texts=3)
    assert (few.low, few.high, few.mean.low) == ([], [], None)


def mixture(**members: float) -> JudgedEstimator:
    model = get_model_class("best")()
    model.members_ = tuple(get_model_class(name)() for name in members)  # type: ignore[attr-defined]
    model.weights_ = np.array(list(members.values()))  # type: ignore[attr-defined]
    return model


def test_the_heaviest_quick_member_that_looks_at_all_stands_for_a_mixture_or_a_network_that_searches_nothing() -> (
    None
):
    for members, ordinal, stands in (
        ({"isotonic": 0.5, "ordinal": 0.2, "ridge": 0.3}, True, "ridge"),
        ({"network": 0.6, "constant": 0.3, "weighted_sum": 0.1}, True, "weighted_sum"),
        ({"isotonic": 0.5, "judge_mean": 0.5}, True, "ordinal"),
        ({"isotonic": 1.0}, True, "isotonic"),
        ({"network": 1.0}, True, "ordinal"),
        ({"constant": 0.4, "judge_mean": 0.6}, False, "network"),
        ({"constant": 0.9, "network": 0.1}, False, "network"),
        ({"judge_mean": 1.0}, False, "judge_mean"),
    ):
        assert get_model_name(choose_quick_model(mixture(**members), ordinal=ordinal)) == stands
    for name, stands in {"ridge": "ridge", "isotonic": "isotonic", "network": "ordinal"}.items():
        assert get_model_name(choose_quick_model(get_model_class(name)())) == stands, (
            "a model stands for itself unless it is slow"
        )
    quick = choose_quick_model(
        get_model_class("network")(search="random", h1=25), ordinal=False
    ).get_params()
    assert (quick["search"], quick["seeds"], quick["h1"]) == (None, 3, 25)


TEXTS = 8


def test_who_answered_and_who_judged_both_have_their_figures(tmp_path: Path) -> None:
    llms = ("gpt", "llama")
    people = ("ann", "bob", "cy")
    answers = [
        f"t{n},overall,{option},0.5,{llms[n % 2]}" for n in range(TEXTS) for option in (1, 2)
    ]
    judgments = [f"t{n},overall,{judge},{1 + n // 2 % 2}" for n in range(TEXTS) for judge in people]
    (tmp_path / "a.csv").write_text(
        "\n".join(["text_id,question,option,probability,judge", *answers])
    )
    (tmp_path / "j.csv").write_text("\n".join(["text_id,question,judge,answer", *judgments]))
    table = read_answers(tmp_path / "a.csv")
    judged = read_judgments(tmp_path / "j.csv", table)
    bench = split_bench(table, judged, 0, None, QUICK_EFFORT, NullProgress())
    proba = np.full((len(bench.given), 2), 0.5)
    own = Predictions(proba, bench.given.answer, bench.given.row, (1.0, 2.0))
    found = measure_subgroups(bench, own, table, judged)
    counts = {
        title: {name: one.rmse.n for name, one in groups.items()} for title, groups in found.items()
    }
    assert counts == {
        "judge (column of the answers)": {"gpt": TEXTS // 2 * 3, "llama": TEXTS // 2 * 3},
        "judge": dict.fromkeys(people, TEXTS),
    }
