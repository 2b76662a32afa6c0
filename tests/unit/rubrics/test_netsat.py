"""NetSAT, worked by hand, and the weights of a set and its starter."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from pollex.errors import WrongUse
from pollex.rubrics.answers import Answer, Unanswered
from pollex.rubrics.score import (
    NetSat,
    compute_answer_value,
    compute_decision_probability_from_costs,
)
from pollex.rubrics.starter import fit_starter_weights, standardize_values
from pollex.selection.threshold import Calibration, Window

NETSAT = NetSat(
    signs={"s1": 1, "s2": 1, "d1": -1},
    theta=2.0,
    window=Window(lower=0.0, upper=5.0, precision=0.9),
    calibration=Calibration(slope=0.0, intercept=0.0),
)


def answer(id_: str, *probabilities: float, source: str = "logprobs") -> Answer:
    chosen = max(range(5), key=lambda n: probabilities[n])
    return Answer.model_validate(
        {"question_id": id_, "probabilities": probabilities, "chosen": chosen, "source": source}
    )


ANSWERS = [
    answer("s1", 0, 0, 0, 0.5, 0.5),  # 7.5/2 + 10/2 = 8.75
    answer("s2", 0.2, 0.2, 0.0, 0.0, 0.0),  # (0·0.2 + 2.5·0.2) / 0.4 = 1.25
    answer("d1", 0, 0, 0.8, 0.2, 0),  # 5·0.8 + 7.5·0.2 = 5.5
]


def test_a_score_is_the_signed_sum_of_expected_values() -> None:
    score = NETSAT.score_all({"c": ANSWERS})[0]
    assert score.netsat == pytest.approx(8.75 + 1.25 - 5.5)
    assert (score.label, score.confident, score.probability) == ("positive", False, 0.5)
    assert replace(NETSAT, theta=4.5).score_all({"c": ANSWERS})[0].label == "negative", "θ itself"
    assert len(repr(NETSAT.score_all({str(n): ANSWERS for n in range(100)}))) < 200, (
        "an event loop may show it"
    )


def test_a_score_outside_one_window_may_lie_in_the_one_with_a_guarantee() -> None:
    both = replace(NETSAT, window=Window(0.0, 4.0), guaranteed=Window(None, 6.0))
    found = [
        both.read("c", netsat, p) for netsat, p in ((7.0, 0.9), (5.0, 0.8), (3.0, 0.6), (-1.0, 0.1))
    ]
    assert [score.confident for score in found] == [True, True, False, True]
    assert both.read("c", 7.0, 0.6).confident is False, "a toss-up is never confident"
    none = replace(NETSAT, window=Window(None, None, fitted=False))
    assert none.read("c", 7.0, 0.9).confident is None
    assert [score.guaranteed for score in found] == [True, False, False, False]
    assert NETSAT.read("c", 7.0).guaranteed is None


def test_a_point_mass_counts_with_its_option_and_rules_can_be_set() -> None:
    point = answer("s1", 0.0, 0.3, 0.7, 0.0, 0.0, source="point")
    assert compute_answer_value(point) == 5.0
    assert compute_answer_value(point, "expected") == pytest.approx(0.3 * 2.5 + 0.7 * 5)
    assert compute_answer_value(ANSWERS[2], "mode") == 5.0


def test_the_order_in_which_answers_came_changes_no_digit() -> None:
    scores = [NETSAT.score_all({"c": order})[0] for order in itertools.permutations(ANSWERS)]
    assert len({score.netsat for score in scores}) == 1
    assert {tuple(one.question_id for one in score.answers) for score in scores} == {
        ("s1", "s2", "d1")
    }


def test_what_nobody_answered_has_the_first_rubrics_outcome_and_what_some_did_is_incomplete() -> (
    None
):
    failed = [
        Unanswered(question_id=id_, outcome=outcome)
        for id_, outcome in (("d1", "refused"), ("s1", "error"), ("s2", "truncated"))
    ]
    assert NETSAT.score_all({"c": failed})[0].outcome == "error"
    for kept in ([], ANSWERS[:1], ANSWERS[1:], [*ANSWERS[:2], failed[0]]):
        score = NETSAT.score_all({"c": kept})[0]
        assert (score.netsat, score.label, score.confident, score.probability) == (
            None,
            None,
            None,
            None,
        )
        assert score.outcome == "incomplete"


def test_what_never_came_up_counts_as_neutral_or_as_its_rubrics_mean() -> None:
    never = Answer(question_id="s1", probabilities=(0.0,) * 5, chosen=5, source="point")
    assert never.never_came_up
    assert NETSAT.score_all({"c": [never, *ANSWERS[1:]]})[0].netsat == pytest.approx(
        5.0 + 1.25 - 5.5
    )
    counted = replace(NETSAT, never={"s1": 7.0})
    assert counted.score_all({"c": [never, *ANSWERS[1:]]})[0].netsat == pytest.approx(
        7.0 + 1.25 - 5.5
    )


UNSURE = Window(None, None, 0.9)
STEEP = Calibration(1.0, 0.0)


def test_the_decision_follows_the_probability_and_says_why_it_is_not_the_label() -> None:
    plain = NetSat(signs={}, theta=2.0, window=UNSURE, calibration=STEEP)
    low, mid, high = (plain.read("c", netsat) for netsat in (-1.0, 1.0, 3.0))
    assert [(s.label, s.decision) for s in (low, high)] == [
        ("negative", "negative"),
        ("positive", "positive"),
    ]
    assert (low.differs, high.differs) == ("", "")
    assert (mid.label, mid.decision) == ("negative", "positive")
    assert "NetSAT 1.0 is not over θ, 2.0" in mid.differs
    assert "0.73, reaches 0.50" in mid.differs


def test_costs_of_mistakes_move_the_decision() -> None:
    assert compute_decision_probability_from_costs((1, 1)) == 0.5
    careful = NetSat(
        signs={},
        theta=0.0,
        window=UNSURE,
        calibration=STEEP,
        decide_at=compute_decision_probability_from_costs((9, 1)),
    )
    found = careful.read("c", 1.0)
    assert (found.label, found.decision) == ("positive", "negative")
    assert "is under 0.90" in found.differs
    with pytest.raises(WrongUse, match="costs of 0 and 1"):
        compute_decision_probability_from_costs((0, 1))


def samples(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Labels, and z of a set of one's own, of a good starter, and of one that says nothing."""
    rng = np.random.default_rng(0)
    good = np.arange(2000) % 2 == 0
    columns = [
        good + rng.normal(size=2000),
        2 * good + rng.normal(size=2000),
        rng.normal(size=2000),
    ]
    own, starter, noise = (standardize_values(column)[:n] for column in columns)
    return good[:n], own, starter, noise


def test_ten_labels_leave_a_good_starter_its_weight_and_take_it_from_one_that_says_nothing() -> (
    None
):
    good, own, starter, noise = samples(2000)
    tens = [slice(first, first + 10) for first in range(0, 1000, 10)]
    helped, misled = (
        np.mean([fit_starter_weights(own[n], other[n], good[n]) for n in tens], axis=0)
        for other in (starter, noise)
    )
    assert helped[1] > 0.5
    assert 0 <= misled[1] < 0.35
    assert min(helped[0], misled[0]) > 0.5


def test_many_labels_move_the_weights() -> None:
    good, own, starter, noise = samples(2000)
    assert fit_starter_weights(own, noise, good)[1] < 0.15
    assert fit_starter_weights(own, starter, good)[1] > 1.5
    assert standardize_values(np.ones(3)).tolist() == [0, 0, 0], (
        "without spread nothing is divided by it"
    )


def test_a_starter_that_points_the_wrong_way_is_left_out_and_not_turned_round() -> None:
    for n in (10, 40, 2000):
        good, own, starter, _ = samples(n)
        assert 0 <= fit_starter_weights(own, -starter, good)[1] < 0.1
