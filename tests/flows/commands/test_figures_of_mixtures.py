"""Which model answers for a mixture where figures take many fits."""

import numpy as np
import pytest

from pollex.calibration.models import model_named, name_of
from pollex.services.calibration_report import quick_of


@pytest.mark.parametrize(
    ("members", "stands"),
    [
        ({"isotonic": 0.5, "ordinal": 0.2, "ridge": 0.3}, "ridge"),
        ({"network": 0.6, "constant": 0.3, "weighted_sum": 0.1}, "weighted_sum"),
        ({"isotonic": 0.5, "judge_mean": 0.5}, "ordinal"),
        ({"isotonic": 1.0}, "isotonic"),
        ({"network": 1.0}, "ordinal"),
    ],
)
def test_the_heaviest_member_that_looks_at_every_question_stands_for_a_mixture(
    members: dict[str, float], stands: str
) -> None:
    model = model_named("best")()
    model.members_ = tuple(model_named(name)() for name in members)  # type: ignore[attr-defined]
    model.weights_ = np.array(list(members.values()))  # type: ignore[attr-defined]
    assert name_of(quick_of(model)) == stands


@pytest.mark.parametrize(("name", "stands"), [("ridge", "ridge"), ("isotonic", "isotonic"), ("network", "ordinal")])
def test_a_model_stands_for_itself_unless_it_is_slow(name: str, stands: str) -> None:
    assert name_of(quick_of(model_named(name)())) == stands


@pytest.mark.parametrize(
    ("members", "stands"),
    [
        ({"constant": 0.4, "judge_mean": 0.6}, "network"),
        ({"constant": 0.9, "network": 0.1}, "network"),
        ({"network": 1.0}, "network"),
        ({"judge_mean": 1.0}, "judge_mean"),
    ],
)
def test_where_the_main_question_has_no_order_no_model_that_needs_one_stands_in(
    members: dict[str, float], stands: str
) -> None:
    model = model_named("best")()
    model.members_ = tuple(model_named(name)() for name in members)  # type: ignore[attr-defined]
    model.weights_ = np.array(list(members.values()))  # type: ignore[attr-defined]
    assert name_of(quick_of(model, ordinal=False)) == stands


def test_a_network_that_is_fitted_a_hundred_times_has_few_seeds_and_searches_nothing() -> None:
    quick = quick_of(model_named("network")(search="random", h1=25), ordinal=False).get_params()
    assert (quick["search"], quick["seeds"], quick["h1"]) == (None, 3, 25)
