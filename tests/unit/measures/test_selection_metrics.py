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
    assess,
    assess_window,
    auc,
    auc_difference,
    auc_statistic,
)
from pollex.measures.intervals import ClassSample, Figure, resample_counts
from pollex.selection.threshold import Window

NOTHING_CERTAIN = Window(None, None)


def figures(assessment: Assessment) -> dict[str, Figure]:
    fields = {field.name: getattr(assessment, field.name) for field in dataclasses.fields(assessment)}
    return {name: metric for name, metric in fields.items() if isinstance(metric, Figure)}


def assessed(
    scores: np.ndarray, positive: np.ndarray, theta: float, window: Window, *rest: Any, **more: Any
) -> Assessment:
    return assess(scores, positive, theta, window.confident(scores), *rest, **more)


def beyond(
    window: Window, scores: np.ndarray, positive: np.ndarray, together: np.ndarray | None = None
) -> WindowAssessment:
    return assess_window(window.over(scores), window.under(scores), positive, together)


def measure(scores: list[float], labels: list[int], theta: float, window: Window = NOTHING_CERTAIN) -> Assessment:
    return assessed(np.array(scores, float), np.array(labels, bool), theta, window, np.random.default_rng(0), 200)


def test_no_conversations_leave_every_figure_undefined() -> None:
    for metric in figures(measure([], [], 0.0)).values():
        assert metric == Figure(None, n=0, undefined="no conversations")


@pytest.mark.parametrize(("label", "word"), [(1, "positive"), (0, "negative")])
@pytest.mark.parametrize("n", [1, 5])
def test_one_class_leaves_all_but_the_yield_undefined(label: int, word: str, n: int) -> None:
    metrics = figures(measure([*range(n)], [label] * n, 0.5, Window(-1.0, 0.5)))
    yield_rate = metrics.pop("yield_rate")
    assert yield_rate.value == (n - 1) / n
    for metric in metrics.values():
        assert metric.value is metric.low is metric.high is None
        assert metric.undefined == f"only {word} conversations"


def test_precision_is_undefined_when_nothing_is_labeled_positive() -> None:
    metrics = figures(measure([1, 2, 3, 4], [0, 1, 0, 1], 10.0))
    assert metrics["precision"] == Figure(None, n=0, undefined="nothing is labeled positive")
    assert metrics["recall"].value == 0
    assert metrics["f1"].value == 0
    assert metrics["confident_accuracy"].undefined == "every score is in the uncertainty window"


def test_one_conversation_of_a_class_has_a_value_without_an_interval() -> None:
    metrics = figures(measure([1, 2, 3], [0, 0, 1], 2.5))
    assert metrics["auc"] == Figure(1.0, None, None, 3)
    assert metrics["yield_rate"].low == 0
    one_each = figures(measure([1, 3], [0, 1], 2.0, Window(1.5, None)))["yield_rate"]
    assert one_each == Figure(0.5, None, None, 2)  # every resample of one a class is the log itself


def test_constant_scores_have_an_auc_of_one_half() -> None:
    assert figures(measure([5] * 10, [0, 1] * 5, 5.0))["auc"] == Figure(0.5, 0.5, 0.5, 10)


def test_figures_of_six_conversations_worked_by_hand() -> None:
    # Scores 5 4 2 | 3 2 1, the first three positive; θ = 2.5: TP 2, FN 1, FP 1, TN 2.
    # AUC: 5 and 4 beat all three, 2 ties with one (½) and beats one: (3 + 3 + 1½)/9.
    # ΔNetSAT = 11/3 − 2. Window (1, 4]: 5 (right) and 1 (right) are outside.
    assessment = measure([5, 4, 2, 3, 2, 1], [1, 1, 1, 0, 0, 0], 2.5, Window(1.0, 4.0))
    values = {name: metric.value for name, metric in figures(assessment).items()}
    assert values == pytest.approx(
        {
            "accuracy": 4 / 6,
            "precision": 2 / 3,
            "recall": 2 / 3,
            "f1": 2 / 3,
            "auc": 7.5 / 9,
            "delta_netsat": 5 / 3,
            "yield_rate": 2 / 6,
            "confident_accuracy": 1.0,
        },
        abs=1e-12,
    )
    assert (assessment.n, assessment.positives, assessment.negatives) == (6, 3, 3)
    counts = {name: metric.n for name, metric in figures(assessment).items()}
    assert counts == dict.fromkeys(counts, 6) | {"precision": 3, "recall": 3, "confident_accuracy": 2}


conversations = st.lists(st.tuples(st.integers(-10, 10).map(lambda x: x / 4), st.booleans()), min_size=2, max_size=40)


@given(conversations, st.sampled_from([-0.6, 0.1, 1.1]))
def test_any_scores_agree_with_scikit_learn(pairs: list[tuple[float, bool]], theta: float) -> None:
    scores, positive = np.array([s for s, _ in pairs]), np.array([up for _, up in pairs])
    assume(positive.any() and not positive.all())
    metrics = figures(assessed(scores, positive, theta, NOTHING_CERTAIN, np.random.default_rng(0), 20))
    said = scores > theta
    assert auc(scores, positive) == pytest.approx(roc_auc_score(positive, scores), abs=1e-9)
    assert metrics["auc"].value == pytest.approx(roc_auc_score(positive, scores), abs=1e-9)
    assert metrics["accuracy"].value == pytest.approx(accuracy_score(positive, said), abs=1e-9)
    assert metrics["recall"].value == pytest.approx(recall_score(positive, said), abs=1e-9)
    assert metrics["f1"].value == pytest.approx(f1_score(positive, said), abs=1e-9)
    if said.any():
        assert metrics["precision"].value == pytest.approx(precision_score(positive, said), abs=1e-9)


def test_weights_count_as_copies() -> None:
    rng = np.random.default_rng(4)
    scores, up = rng.integers(0, 6, 30) / 2, np.arange(30) < 12
    weights = np.hstack([resample_counts(25, 12, rng), resample_counts(25, 18, rng)])
    expected = [roc_auc_score(np.repeat(up, row), np.repeat(scores, row)) for row in weights.astype(int)]
    assert auc_statistic(scores, 12)(weights) == pytest.approx(expected, abs=1e-9)


def test_an_auc_needs_both_classes() -> None:
    with pytest.raises(BadLabels):
        auc(np.arange(3.0), np.zeros(3, bool))


def test_a_resample_draws_as_many_as_there_are_and_each_about_once() -> None:
    weights = resample_counts(4000, 5, np.random.default_rng(0))
    assert (weights.sum(1) == 5).all()
    assert weights.mean(0) == pytest.approx(np.ones(5), abs=0.06)


def test_intervals_are_those_of_all_possible_resamples() -> None:
    # Positives score 1 0 0 0 0 and negatives 0: ΔNetSAT of a resample is a fifth of how often the 1 is in it, which is
    # binomial. Student's t of 4 degrees of freedom is 2.776; times √(5/4) that is 3.104, and Φ(−3.104) = .00096.
    every = [np.mean(picks) for picks in itertools.product([1.0, 0.0, 0.0, 0.0, 0.0], repeat=5)]
    scores, positive = np.array([1.0, *[0.0] * 9]), np.arange(10) < 5
    metric = assessed(scores, positive, 0.5, NOTHING_CERTAIN, np.random.default_rng(0), 20_000).delta_netsat
    assert metric == Figure(0.2, *(pytest.approx(end) for end in np.quantile(every, [0.00096, 0.99904])), 10)


def test_fewer_than_five_of_a_class_have_no_interval_but_an_exact_one() -> None:
    found = figures(measure([1, 2, 3, 4, 3, 4, 5, 6], [0, 0, 0, 0, 1, 1, 1, 1], 2.5))
    assert (found["auc"].value, found["auc"].low, found["accuracy"].low) == (14 / 16, None, None)
    assert (found["recall"].value, found["recall"].low) == (1.0, pytest.approx(0.025 ** (1 / 4)))


def test_the_interval_of_an_auc_is_the_textbooks_on_log_odds() -> None:
    # DeLong's standard error: of each positive the share of negatives that it beats, and the other way round.
    rng = np.random.default_rng(2)
    scores, positive = rng.normal(size=300) + 2 * (np.arange(300) < 120), np.arange(300) < 120
    won = (scores[positive][:, None] > scores[~positive]).astype(float)
    error = np.sqrt(won.mean(1).var(ddof=1) / 120 + won.mean(0).var(ddof=1) / 180)
    value = float(won.mean())
    metric = assessed(scores, positive, 0.0, NOTHING_CERTAIN, rng, 4000).auc
    assert logit(metric.low) + logit(metric.high) == pytest.approx(2 * logit(value))
    assert logit(metric.high) - logit(value) == pytest.approx(1.98 * error / (value * (1 - value)), rel=0.05)


@pytest.mark.nightly
@pytest.mark.parametrize(("positives", "negatives", "apart"), [(50, 50, 3.0), (90, 10, 1.8), (25, 25, 2.4)])
def test_an_auc_lies_in_its_interval_nineteen_times_of_twenty_near_1_too(
    positives: int, negatives: int, apart: float
) -> None:
    rng, held = np.random.default_rng(0), []
    positive, truth = np.arange(positives + negatives) < positives, norm.cdf(apart / np.sqrt(2))
    for _ in range(200):
        scores = rng.normal(size=len(positive)) + apart * positive
        metric = assessed(scores, positive, 0.0, NOTHING_CERTAIN, rng, 200).auc
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
    scores, positive = np.arange(20.0), np.arange(20) >= 10
    found = auc_difference(scores, other, positive, np.random.default_rng(0))
    assert (found.value, found.low, found.high) == pytest.approx(expected)
    few = auc_difference(scores[8:12], other[8:12], positive[8:12], np.random.default_rng(0))
    assert (few.value, few.low, few.high) == (expected[0], None, None)


def test_copies_that_go_together_tell_no_more_than_one() -> None:
    rng = np.random.default_rng(3)
    scores, positive, window = rng.normal(size=60), np.arange(60) < 25, Window(-0.5, 0.5)
    copied = np.repeat(np.arange(60), 4)
    alone = assessed(scores, positive, 0.1, window, np.random.default_rng(0))
    four = assessed(scores[copied], positive[copied], 0.1, window, np.random.default_rng(0), together=copied)
    for name, metric in figures(four).items():
        one = figures(alone)[name]
        assert metric.value == pytest.approx(one.value)
        assert 0.85 < (metric.high - metric.low) / (one.high - one.low) < 1.4, name  # as fours alone, 0.5
        assert metric.n == 4 * one.n
    found = beyond(window, scores[copied], positive[copied], copied)
    assert (found.accuracy.low, found.accuracy.high) == pytest.approx(
        (beyond(window, scores, positive).accuracy.low, beyond(window, scores, positive).accuracy.high)
    )
    ahead, same = (
        auc_difference(scores[rows], -scores[rows], positive[rows], np.random.default_rng(0), together=together)
        for rows, together in ((copied, copied), (np.arange(60), None))
    )
    assert 0.85 < (ahead.high - ahead.low) / (same.high - same.low) < 1.4


def test_users_who_are_of_one_mind_widen_intervals() -> None:
    # 12 users of 10 conversations: most of what moves a score, and of what moves a thumb, is the user.
    rng, held, alone = np.random.default_rng(1), [], []
    users = np.repeat(np.arange(12), 10)

    def drawn_log(count: int) -> tuple[np.ndarray, np.ndarray]:
        mood, taste = (1.5 * np.repeat(rng.normal(size=count), 10) for _ in range(2))
        positive = mood + rng.normal(size=10 * count) > 0
        return positive + taste + rng.normal(size=10 * count), positive

    truth = auc(*drawn_log(20_000))
    for _ in range(150):
        scores, positive = drawn_log(12)
        for found, together in ((held, users), (alone, None)):
            metric = assessed(scores, positive, 0.5, NOTHING_CERTAIN, rng, 200, together).auc
            found.append(metric.low <= truth <= metric.high)
    assert np.mean(alone) < 0.85
    assert np.mean(held) > 0.9


def test_figures_lie_in_their_intervals_where_many_users_have_thumbs_of_one_class_only() -> None:
    # 20 users of 5 conversations; of the figures the worst held the truth 83 times of 100 when such users were
    # resampled by themselves.
    rng, users = np.random.default_rng(1), np.repeat(np.arange(20), 5)

    def drawn_log(count: int) -> tuple[np.ndarray, np.ndarray]:
        mood = np.repeat(rng.normal(size=count), 5)
        positive = mood + rng.normal(size=5 * count) > 0
        return mood + positive + rng.normal(size=5 * count), positive

    scores, positive = drawn_log(50_000)
    truth = {"auc": auc(scores, positive), "delta_netsat": scores[positive].mean() - scores[~positive].mean()}
    held: dict[str, list[bool]] = {name: [] for name in truth}
    for _ in range(150):
        found = figures(assessed(*drawn_log(20), 0.5, NOTHING_CERTAIN, rng, 200, users))
        for name, value in truth.items():
            held[name].append(found[name].low <= value <= found[name].high)
    assert min(np.mean(each) for each in held.values()) > 0.9


def test_a_resample_has_both_classes_even_where_one_user_has_all_of_one() -> None:
    together = np.array([0, 0, *np.repeat(np.arange(1, 20), 2)])
    (weights,) = ClassSample((2, 38), together).resampled(500, np.random.default_rng(0))
    assert (weights[:, :2].sum(axis=1) > 0).all()
    assert weights.shape == (500, 40)
    (alike,) = ClassSample((0, 40), together).resampled(500, np.random.default_rng(0))
    assert (alike.sum(axis=1) == 40).all()


def test_the_interval_of_a_mean_difference_has_the_textbook_width() -> None:
    # The standard error of ΔNetSAT with population variances: √(σ₊²/n₊ + σ₋²/n₋); ±1.96 of it for 95 %.
    rng = np.random.default_rng(1)
    scores, positive = rng.normal(0, 10, 800), np.arange(800) % 4 == 0
    metric = figures(assessed(scores, positive, 0.0, NOTHING_CERTAIN, rng, 4000))["delta_netsat"]
    error = np.sqrt(scores[positive].var() / 200 + scores[~positive].var() / 600)
    assert (metric.high - metric.low) / 2 == pytest.approx(1.96 * error, rel=0.05)


def test_the_order_of_conversations_and_a_repeated_seed_change_nothing() -> None:
    rng = np.random.default_rng(8)
    scores, positive = rng.normal(size=50), rng.random(50) < 0.4
    first = assessed(scores, positive, 0.1, Window(-1, 1), np.random.default_rng(3))
    assert first == assessed(scores, positive, 0.1, Window(-1, 1), np.random.default_rng(3))
    order = rng.permutation(50)
    again = assessed(scores[order], positive[order], 0.1, Window(-1, 1), np.random.default_rng(3))
    assert [m.value for m in figures(again).values()] == pytest.approx([m.value for m in figures(first).values()])


def test_a_difference_of_aucs_is_measured_on_the_same_resamples() -> None:
    rng = np.random.default_rng(5)
    positive = np.arange(200) % 2 == 0
    scores = rng.normal(size=200) + positive
    same = auc_difference(scores, 3 * scores + 1, positive, rng)
    assert same == Figure(0.0, 0.0, 0.0, 200)
    better = auc_difference(scores, rng.normal(size=200), positive, rng)
    assert better.value == pytest.approx(auc(scores, positive) - 0.5, abs=0.1)
    assert 0 < better.low < better.value < better.high


def test_a_difference_with_one_class_is_undefined() -> None:
    metric = auc_difference(np.zeros(3), np.ones(3), np.ones(3, bool), np.random.default_rng(0))
    assert metric == Figure(None, n=3, undefined="only positive conversations")


def test_what_lies_beyond_a_window_by_hand() -> None:
    # Over 8 are 9 and 10, both positive; at most 3 are 1, 2 and 3, of which 2 is positive. 5 of 10 lie outside.
    scores = np.arange(1.0, 11.0)
    positive = np.isin(scores, [2, 7, 9, 10])
    found = beyond(Window(lower=3.0, upper=8.0), scores, positive)
    assert [one.value for one in (found.yield_rate, found.accuracy)] == [5 / 10, 4 / 5]
    assert [(one.value, one.n) for one in (found.positive, found.negative)] == [(1.0, 2), (2 / 3, 3)]
    assert found.positive.low == pytest.approx(0.025 ** (1 / 2))  # exact: p² = 0.025
    assert found.positive.high == 1.0
    assert found.negative.low == pytest.approx(binomtest(2, 3).proportion_ci().low)
    assert found.negative.high == pytest.approx(binomtest(2, 3).proportion_ci().high)


def test_beyond_a_side_without_a_threshold_nothing_is_measured() -> None:
    scores, positive = np.arange(4.0), np.array([False, False, True, True])
    found = beyond(Window(lower=None, upper=1.5), scores, positive)
    assert found.negative == Figure(None, n=0, undefined="nothing is outside the window on this side")
    assert (found.positive.value, found.positive.n, found.accuracy.n) == (1.0, 2, 2)
    nothing = beyond(NOTHING_CERTAIN, scores, positive)
    assert (nothing.yield_rate.value, nothing.yield_rate.n) == (0.0, 4)
    assert nothing.accuracy.undefined == "nothing is outside the window"
    assert beyond(NOTHING_CERTAIN, np.zeros(0), np.zeros(0, bool)).yield_rate.undefined == "no conversations"


def test_what_is_always_right_on_few_conversations_is_not_beyond_doubt() -> None:
    found = figures(measure([3, 4, 5, -3, -4, -5], [1, 1, 1, 0, 0, 0], 0.0, Window(-1.0, 1.0)))
    three, six = 0.025 ** (1 / 3), 0.025 ** (1 / 6)  # Clopper and Pearson's lower end for n of n: (α/2)^(1/n)
    for name, low in (("precision", three), ("recall", three), ("auc", three), ("accuracy", six), ("yield_rate", six)):
        assert (found[name].value, found[name].high) == (1.0, 1.0)
        assert found[name].low == pytest.approx(low)
    assert found["confident_accuracy"].low == pytest.approx(six)
    assert found["f1"].low == pytest.approx(2 * three / (1 + three))


def test_what_never_happened_on_few_conversations_is_not_impossible() -> None:
    found = figures(measure([-3, -4, -5, 3, 4, 5], [1, 1, 1, 0, 0, 0], 0.0, Window(None, None)))
    three, six = 1 - 0.025 ** (1 / 3), 1 - 0.025 ** (1 / 6)
    for name, high in (("precision", three), ("recall", three), ("auc", three), ("accuracy", six), ("yield_rate", six)):
        assert (found[name].value, found[name].low) == (0.0, 0.0)
        assert found[name].high == pytest.approx(high)
    assert found["f1"].high == pytest.approx(2 * six / (1 + six))
