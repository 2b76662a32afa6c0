import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import logit
from scipy.stats import binomtest, norm
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score, roc_auc_score

from pollex.errors import BadLabels
from pollex.measures.classification import (
    Assessment,
    WindowAssessment,
    assess_scores_against_labels,
    assess_uncertainty_window,
    compute_auc,
    estimate_auc_difference,
    make_auc_statistic,
)
from pollex.measures.intervals import ClassSample, Figure, draw_resample_counts
from pollex.selection.threshold import Window

NOTHING_CERTAIN = Window(None, None)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def figures(assessment: Assessment) -> dict[str, Figure]:
    fields = {
        field.name: getattr(assessment, field.name) for field in dataclasses.fields(assessment)
    }
    return {name: metric for name, metric in fields.items() if isinstance(metric, Figure)}


def assessed(
    scores: np.ndarray, positive: np.ndarray, theta: float, window: Window, *rest: Any, **more: Any
) -> Assessment:
    return assess_scores_against_labels(
        scores, positive, theta, window.confident(scores), *rest, **more
    )


def beyond(
    window: Window, scores: np.ndarray, positive: np.ndarray, together: np.ndarray | None = None
) -> WindowAssessment:
    return assess_uncertainty_window(window.over(scores), window.under(scores), positive, together)


def measure(
    scores: list[float], labels: list[int], theta: float, window: Window = NOTHING_CERTAIN
) -> dict[str, Figure]:
    return figures(
        assessed(np.array(scores, float), np.array(labels, bool), theta, window, rng(), 200)
    )


def test_no_conversations_leave_every_figure_undefined_and_one_class_all_but_the_yield() -> None:
    assert {*measure([], [], 0.0).values()} == {Figure(None, n=0, undefined="no conversations")}
    for label, word, n in ((1, "positive", 1), (0, "negative", 5)):
        metrics = measure([*range(n)], [label] * n, 0.5, Window(-1.0, 0.5))
        assert metrics.pop("yield_rate").value == (n - 1) / n
        for metric in metrics.values():
            assert metric == Figure(None, n=metric.n, undefined=f"only {word} conversations")


def test_precision_is_undefined_when_nothing_is_labeled_positive() -> None:
    metrics = measure([1, 2, 3, 4], [0, 1, 0, 1], 10.0)
    assert metrics["precision"] == Figure(None, n=0, undefined="nothing is labeled positive")
    assert metrics["recall"].value == metrics["f1"].value == 0
    assert metrics["confident_accuracy"].undefined.startswith("none, since every score")


def test_one_conversation_of_a_class_has_a_value_without_an_interval_and_constant_scores_an_auc_of_a_half() -> (
    None
):
    metrics = measure([1, 2, 3], [0, 0, 1], 2.5)
    assert metrics["auc"] == Figure(1.0, None, None, 3)
    assert metrics["yield_rate"].low == 0
    one_each = measure([1, 3], [0, 1], 2.0, Window(1.5, None))["yield_rate"]
    # every resample of one a class is the log itself
    assert one_each == Figure(0.5, None, None, 2)
    assert measure([5] * 10, [0, 1] * 5, 5.0)["auc"] == Figure(0.5, 0.5, 0.5, 10)


def test_figures_of_six_conversations_worked_by_hand() -> None:
    # Scores 5 4 2 | 3 2 1, the first three positive; θ = 2.5: TP 2, FN 1, FP 1, TN 2.
    # AUC: 5 and 4 beat all three, 2 ties with one (½) and beats one: (3 + 3 + 1½)/9.
    # ΔNetSAT = 11/3 − 2. Window (1, 4]: 5 (right) and 1 (right) are outside.
    found = measure([5, 4, 2, 3, 2, 1], [1, 1, 1, 0, 0, 0], 2.5, Window(1.0, 4.0))
    expected = {
        "accuracy": (4 / 6, 6),
        "precision": (2 / 3, 3),
        "recall": (2 / 3, 3),
        "f1": (2 / 3, 6),
        "auc": (7.5 / 9, 6),
        "delta_netsat": (5 / 3, 6),
        "yield_rate": (2 / 6, 6),
        "confident_accuracy": (1.0, 2),
    }
    assert {
        name: (pytest.approx(metric.value, abs=1e-12), metric.n) for name, metric in found.items()
    } == expected


conversations = st.lists(
    st.tuples(st.integers(-10, 10).map(lambda x: x / 4), st.booleans()), min_size=2, max_size=40
)


@given(conversations, st.sampled_from([-0.6, 0.1, 1.1]))
def test_any_scores_agree_with_scikit_learn(pairs: list[tuple[float, bool]], theta: float) -> None:
    scores = np.array([s for s, _ in pairs])
    positive = np.array([up for _, up in pairs])
    assume(positive.any() and not positive.all())
    metrics = figures(assessed(scores, positive, theta, NOTHING_CERTAIN, rng(), 2))
    said = scores > theta
    theirs = {"accuracy": accuracy_score, "recall": recall_score, "f1": f1_score}
    theirs |= {"precision": precision_score} if said.any() else {}
    expected = {name: score(positive, said) for name, score in theirs.items()}
    expected |= {"auc": roc_auc_score(positive, scores)}
    assert {name: metrics[name].value for name in expected} == pytest.approx(expected, abs=1e-9)
    assert compute_auc(scores, positive) == pytest.approx(expected["auc"], abs=1e-9)


def test_weights_count_as_copies_of_which_a_resample_draws_as_many_as_there_are_and_each_about_once() -> (
    None
):
    draw = rng(4)
    scores = draw.integers(0, 6, 30) / 2
    up = np.arange(30) < 12
    weights = np.hstack([draw_resample_counts(25, 12, draw), draw_resample_counts(25, 18, draw)])
    expected = [
        roc_auc_score(np.repeat(up, row), np.repeat(scores, row)) for row in weights.astype(int)
    ]
    assert make_auc_statistic(scores, 12)(weights) == pytest.approx(expected, abs=1e-9)
    many = draw_resample_counts(4000, 5, draw)
    assert (many.sum(1) == 5).all()
    assert many.mean(0) == pytest.approx(np.ones(5), abs=0.06)


def test_intervals_are_those_of_all_possible_resamples() -> None:
    # Positives score 1 0 0 0 0 and negatives 0: ΔNetSAT of a resample is a fifth of how often the 1
    # is in it, which is binomial. Student's t of 4 degrees of freedom is 2.776; times √(5/4) that
    # is 3.104, and Φ(−3.104) = .00096.
    every = [np.mean(picks) for picks in itertools.product([1.0, 0.0, 0.0, 0.0, 0.0], repeat=5)]
    scores = np.array([1.0, *[0.0] * 9])
    positive = np.arange(10) < 5
    metric = assessed(scores, positive, 0.5, NOTHING_CERTAIN, rng(), 20_000).delta_netsat
    assert metric == Figure(
        0.2, *(pytest.approx(end) for end in np.quantile(every, [0.00096, 0.99904])), 10
    )


def test_fewer_than_five_of_a_class_have_no_interval_but_an_exact_one() -> None:
    found = measure([1, 2, 3, 4, 3, 4, 5, 6], [0, 0, 0, 0, 1, 1, 1, 1], 2.5)
    assert (found["auc"].value, found["auc"].low, found["accuracy"].low) == (14 / 16, None, None)
    assert (found["recall"].value, found["recall"].low) == (1.0, pytest.approx(0.025 ** (1 / 4)))


def test_intervals_of_an_auc_and_of_a_mean_difference_are_the_textbooks() -> None:
    # DeLong's standard error: of each positive the share of negatives that it beats, and the other
    # way round.
    draw = rng(2)
    positive = np.arange(300) < 120
    scores = draw.normal(size=300) + 2 * positive
    won = (scores[positive][:, None] > scores[~positive]).astype(float)
    error = np.sqrt(won.mean(1).var(ddof=1) / 120 + won.mean(0).var(ddof=1) / 180)
    value = float(won.mean())
    found = assessed(scores, positive, 0.0, NOTHING_CERTAIN, draw, 4000)
    assert logit(found.auc.low) + logit(found.auc.high) == pytest.approx(2 * logit(value))
    assert logit(found.auc.high) - logit(value) == pytest.approx(
        1.98 * error / (value * (1 - value)), rel=0.05
    )
    # The standard error of ΔNetSAT with population variances: √(σ₊²/n₊ + σ₋²/n₋); ±1.98 of it for
    # 95 %.
    error = np.sqrt(scores[positive].var() / 120 + scores[~positive].var() / 180)
    width = found.delta_netsat.high - found.delta_netsat.low
    assert width / 2 == pytest.approx(1.98 * error, rel=0.05)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("positives", "negatives", "apart"), [(50, 50, 3.0), (90, 10, 1.8), (25, 25, 2.4)]
)
def test_an_auc_lies_in_its_interval_nineteen_times_of_twenty_near_1_too(
    positives: int, negatives: int, apart: float
) -> None:
    draw = rng()
    held = []
    positive = np.arange(positives + negatives) < positives
    truth = norm.cdf(apart / np.sqrt(2))
    for _ in range(200):
        scores = draw.normal(size=len(positive)) + apart * positive
        metric = assessed(scores, positive, 0.0, NOTHING_CERTAIN, draw, 200).auc
        held.append(metric.low <= truth <= metric.high)
    assert np.mean(held) > 0.92


MISS = 1 - 0.025 ** (1 / 10)
"""10 of 10 are told apart: Clopper and Pearson's interval of that is from 1 − MISS to 1."""


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (np.ones(20), (0.5, 0.5 - MISS, 0.5)),
        (np.arange(20.0) ** 2, (0.0, -MISS, MISS)),
        (-np.arange(20.0), (1.0, 1 - 2 * MISS, 1.0)),
    ],
    ids=["constant", "as good", "upside down"],
)
def test_scores_that_tell_a_few_apart_are_not_ahead_beyond_doubt(
    other: np.ndarray, expected: tuple[float, float, float]
) -> None:
    scores = np.arange(20.0)
    positive = np.arange(20) >= 10
    found = estimate_auc_difference(scores, other, positive, rng())
    assert (found.value, found.low, found.high) == pytest.approx(expected)
    few = estimate_auc_difference(scores[8:12], other[8:12], positive[8:12], rng())
    assert (few.value, few.low, few.high) == (expected[0], None, None)


def test_copies_that_go_together_tell_no_more_than_one() -> None:
    scores = rng(3).normal(size=60)
    positive = np.arange(60) < 25
    window = Window(-0.5, 0.5)
    copied = np.repeat(np.arange(60), 4)
    alone = figures(assessed(scores, positive, 0.1, window, rng()))
    four = figures(assessed(scores[copied], positive[copied], 0.1, window, rng(), together=copied))
    alone["ahead"] = estimate_auc_difference(scores, -scores, positive, rng())
    four["ahead"] = estimate_auc_difference(
        scores[copied], -scores[copied], positive[copied], rng(), together=copied
    )
    for name, one in alone.items():
        assert (four[name].value, four[name].n) == (pytest.approx(one.value), 4 * one.n)
        # as fours alone, 0.5
        assert 0.85 < (four[name].high - four[name].low) / (one.high - one.low) < 1.4, name
    exact = beyond(window, scores, positive).accuracy
    found = beyond(window, scores[copied], positive[copied], copied).accuracy
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def drawn_log(
    draw: np.random.Generator, users: int, each: int, lean: float
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and thumbs, each of which leans as its user does; by as little as 1 both lean alike."""
    mood, taste = (lean * np.repeat(draw.normal(size=users), each) for _ in range(2))
    positive = mood + draw.normal(size=each * users) > 0
    return positive + (mood if lean == 1 else taste) + draw.normal(size=each * users), positive


def test_users_who_are_of_one_mind_widen_intervals() -> None:
    draw = rng(1)
    held = []
    alone = []
    truth = compute_auc(*drawn_log(draw, 20_000, 10, 1.5))
    for _ in range(100):
        scores, positive = drawn_log(draw, 12, 10, 1.5)
        for found, together in ((held, np.repeat(np.arange(12), 10)), (alone, None)):
            metric = assessed(scores, positive, 0.5, NOTHING_CERTAIN, draw, 200, together).auc
            found.append(metric.low <= truth <= metric.high)
    assert np.mean(alone) < 0.85
    assert np.mean(held) > 0.9


def test_figures_lie_in_their_intervals_where_many_users_have_thumbs_of_one_class_only() -> None:
    # Of the figures the worst held the truth 83 times of 100 when such users were resampled by
    # themselves.
    draw = rng(1)
    users = np.repeat(np.arange(20), 5)
    scores, positive = drawn_log(draw, 50_000, 5, 1.0)
    truth = {
        "auc": compute_auc(scores, positive),
        "delta_netsat": scores[positive].mean() - scores[~positive].mean(),
    }
    held: dict[str, list[bool]] = {name: [] for name in truth}
    for _ in range(150):
        found = figures(
            assessed(*drawn_log(draw, 20, 5, 1.0), 0.5, NOTHING_CERTAIN, draw, 200, users)
        )
        for name, value in truth.items():
            held[name].append(found[name].low <= value <= found[name].high)
    assert min(np.mean(each) for each in held.values()) > 0.9


def test_a_resample_has_both_classes_even_where_one_user_has_all_of_one() -> None:
    together = np.array([0, 0, *np.repeat(np.arange(1, 20), 2)])
    (weights,) = ClassSample((2, 38), together).resampled(500, rng())
    assert (weights[:, :2].sum(axis=1) > 0).all()
    (alike,) = ClassSample((0, 40), together).resampled(500, rng())
    assert (alike.sum(axis=1) == 40).all()


def test_the_order_of_conversations_and_a_repeated_seed_change_nothing() -> None:
    draw = rng(8)
    scores = draw.normal(size=50)
    positive = draw.random(50) < 0.4
    order = draw.permutation(50)
    first = assessed(scores, positive, 0.1, Window(-1, 1), rng(3))
    assert first == assessed(scores, positive, 0.1, Window(-1, 1), rng(3))
    again = assessed(scores[order], positive[order], 0.1, Window(-1, 1), rng(3))
    assert [m.value for m in figures(again).values()] == pytest.approx(
        [m.value for m in figures(first).values()]
    )


def test_a_difference_of_aucs_is_measured_on_the_same_resamples_and_undefined_with_one_class() -> (
    None
):
    draw = rng(5)
    positive = np.arange(200) % 2 == 0
    scores = draw.normal(size=200) + positive
    assert estimate_auc_difference(scores, 3 * scores + 1, positive, draw) == Figure(
        0.0, 0.0, 0.0, 200
    )
    better = estimate_auc_difference(scores, draw.normal(size=200), positive, draw)
    assert better.value == pytest.approx(compute_auc(scores, positive) - 0.5, abs=0.1)
    assert 0 < better.low < better.value < better.high  # type: ignore[operator]
    one_class = estimate_auc_difference(scores, -scores, positive | True, draw)
    assert one_class == Figure(None, n=200, undefined="only positive conversations")
    with pytest.raises(BadLabels):
        compute_auc(scores, positive & False)


def test_what_lies_beyond_a_window_by_hand() -> None:
    # Over 8 are 9 and 10, both positive; at most 3 are 1, 2 and 3, of which 2 is positive. 5 of 10
    # lie outside.
    scores = np.arange(1.0, 11.0)
    positive = np.isin(scores, [2, 7, 9, 10])
    found = beyond(Window(lower=3.0, upper=8.0), scores, positive)
    assert (found.yield_rate.value, found.accuracy.value) == (5 / 10, 4 / 5)
    exact = binomtest(2, 3).proportion_ci()
    assert found.positive == Figure(
        1.0, pytest.approx(0.025 ** (1 / 2)), 1.0, 2, units=found.positive.units
    )
    assert (found.negative.value, found.negative.low, found.negative.high) == pytest.approx(
        (2 / 3, *exact)
    )


def test_beyond_a_side_without_a_threshold_nothing_is_measured() -> None:
    scores = np.arange(4.0)
    positive = np.array([False, False, True, True])
    found = beyond(Window(lower=None, upper=1.5), scores, positive)
    assert found.negative == Figure(
        None, n=0, undefined="nothing is outside the window on this side"
    )
    assert (found.positive.value, found.positive.n, found.accuracy.n) == (1.0, 2, 2)
    nothing = beyond(NOTHING_CERTAIN, scores, positive)
    assert (nothing.yield_rate.value, nothing.yield_rate.n) == (0.0, 4)
    assert nothing.accuracy.undefined == "nothing is outside the window"
    assert (
        beyond(NOTHING_CERTAIN, np.zeros(0), np.zeros(0, bool)).yield_rate.undefined
        == "no conversations"
    )


@pytest.mark.parametrize("right", [True, False])
def test_what_is_always_right_or_never_on_few_conversations_is_not_beyond_doubt(
    right: bool,
) -> None:
    window = Window(-1.0, 1.0) if right else NOTHING_CERTAIN
    found = measure([3, 4, 5, -3, -4, -5], [int(right)] * 3 + [int(not right)] * 3, 0.0, window)
    # Clopper and Pearson's other end for n of n: (α/2)^(1/n)
    three = 1 - 0.025 ** (1 / 3)
    six = 1 - 0.025 ** (1 / 6)
    f1 = 2 * (1 - three) / (2 - three) if right else 2 * six / (1 + six)
    ends = dict.fromkeys(("precision", "recall", "auc"), three) | dict.fromkeys(
        ("accuracy", "yield_rate"), six
    )
    for name, width in (ends | {"f1": 1 - f1 if right else f1}).items():
        low, high = (1 - width, 1.0) if right else (0.0, width)
        assert (found[name].value, found[name].low, found[name].high) == pytest.approx(
            (float(right), low, high)
        ), name
    assert not right or found["confident_accuracy"].low == pytest.approx(1 - six)
