"""Densities of predicted scores: they sum to one, bands are wide where judges differ, the tail is the lowest."""

import numpy as np
import pytest

from pollex.calibration.models.baselines import JudgeMean
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.conversations.conversation import Conversation
from pollex.measures.arrays import Floats
from pollex.reports.calibration import PredictedScores
from pollex.services.calibration_report import predicted_of

KIND = Scale("kind", (1.0, 2.0), ordinal=False, asked=False)
ASKED = Questionnaire((Scale("clear", (1.0, 2.0, 3.0)), KIND), "clear")
NAMES = [f"t{number}" for number in range(60)]
X = np.random.default_rng(0).dirichlet(np.ones(3), 60)
BOTH = ["a", "b"] * 30


def fitted(y: Floats) -> OrdinalMixedEffects:
    return OrdinalMixedEffects().fit(X, y, BOTH, ASKED)


def first(model: OrdinalMixedEffects, texts: int = 60) -> PredictedScores:
    return next(predicted_of({"clear": model}, X[:texts], NAMES[:texts], {}, {}, np.random.default_rng(0)))


def test_the_lowest_of_all_and_of_each_subset_stand_below_a_density_of_area_one() -> None:
    model = fitted(np.clip(np.rint(X @ [1, 2, 3]), 1, 3))
    every = model.predict_for(X)
    lowest = NAMES[int(every.argmin())]
    logs = {lowest: Conversation.model_validate({"id": lowest, "turns": [{"role": "user", "content": "why?"}]})}
    nominal = JudgeMean().fit(
        X, [(0, "kind", "a", 1.0), (1, "kind", "b", 2.0)], questions=Questionnaire(ASKED.scales, "kind")
    )
    groups = {"system": ["x", "y"] * 30, "alone": ["z"] * 60}
    models = {"clear": model, "kind": nominal}
    found = [*predicted_of(models, X, NAMES, groups, logs, np.random.default_rng(0))]
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
    widths = []
    for y in (np.clip(np.rint(X @ [1, 2, 3]), 1, 3), np.array([1.0, 3.0] * 30)):
        mean = first(fitted(y)).mean
        assert mean.low is not None
        assert mean.high is not None
        widths.append(mean.high - mean.low)
    assert widths[0] < widths[1]
    few = first(fitted(np.array([1.0, 3.0] * 30)), texts=3)
    assert (few.low, few.high, few.mean.low) == ([], [], None)
