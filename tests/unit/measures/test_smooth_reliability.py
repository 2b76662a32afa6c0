import numpy as np
import pytest

from pollex.measures.distributions import (
    MAX_RELIABILITY_BINS,
    bin_predictions_by_probability,
    compute_smooth_calibration_error,
    compute_wilson_bounds,
    estimate_smooth_calibration_error,
    make_reliability_diagrams,
    smooth_hits_over_probabilities,
)
from pollex.measures.intervals import (
    Figure,
    compute_interval_bounds_from_resamples,
    make_figure_from_resamples,
)

AUTHORS = (0.04349, 0.05429, 0.05169)
"""What relplot 1.0.3, the authors' package, computes for the first 150 that are drawn."""


def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), n)
    return proba, np.array([rng.choice(3, p=row) for row in proba])


def test_one_judgment_has_no_error_and_no_diagram() -> None:
    proba, answer = drawn(1)
    mean, each = estimate_smooth_calibration_error(
        proba, answer, np.zeros(1, int), np.random.default_rng(0)
    )
    assert mean == Figure(None, n=1, undefined="fewer than two judgments", units=1)
    assert each == [mean] * 3
    assert make_reliability_diagrams(proba, answer, np.zeros(1, int), (1.0, 2.0, 3.0)) == []


def test_the_error_of_each_answer_is_that_of_the_authors_package() -> None:
    proba, answer = drawn(150)
    mean, each = estimate_smooth_calibration_error(proba, answer, np.arange(150))
    expected = [
        compute_smooth_calibration_error(proba[:, k], (answer == k).astype(float))[0]
        for k in range(3)
    ]
    assert [error.value for error in each] == pytest.approx(expected, abs=1e-12)
    assert expected == pytest.approx(AUTHORS, abs=0.001)
    assert (mean.value, mean.low) == (pytest.approx(np.mean(expected)), None)


@pytest.mark.nightly
def test_the_interval_is_the_percentiles_mirrored_at_the_value() -> None:
    proba, answer = drawn(80)
    mean, each = estimate_smooth_calibration_error(
        proba, answer, np.arange(80), np.random.default_rng(1), 12
    )
    copies = np.sort(np.random.default_rng(1).integers(80, size=(12, 80)), axis=1)
    draws = [
        compute_smooth_calibration_error(proba[rows, 0], (answer[rows] == 0).astype(float))[0]
        for rows in copies
    ]
    low, high = compute_interval_bounds_from_resamples(np.array(draws), 80)
    value = each[0].value
    assert value > low  # type: ignore[operator]  # so that nothing had to be drawn out
    assert (each[0].low, each[0].high) == pytest.approx((max(0, 2 * value - high), 2 * value - low))  # type: ignore[operator]
    assert mean.low >= 0  # type: ignore[operator]


@pytest.mark.parametrize(
    ("draws", "expected"),
    [
        ([0.3, 0.3], (0.1, 0.2)),  # mirrored: 0.1 and 0.1, both under the value
        ([0.5, 0.5], (0.0, 0.2)),  # mirrored: -0.1
        ([0.1, 0.1], (0.2, 0.3)),  # both above it
        ([0.2, 0.2], (0.2, 0.2)),
    ],
)
def test_a_mirrored_interval_is_drawn_out_to_the_value(
    draws: list[float], expected: tuple[float, float]
) -> None:
    found = make_figure_from_resamples(0.2, np.array(draws), 9, 9, kind="basic")
    assert (found.low, found.high) == pytest.approx(expected)


def test_a_constant_at_the_base_rate_has_no_error_and_one_beside_it_has() -> None:
    answer = np.array([0] * 30 + [1] * 70)
    right, wrong = (
        estimate_smooth_calibration_error(np.tile(p, (100, 1)), answer, np.arange(100))[0].value
        for p in ([0.3, 0.7], [0.5, 0.5])
    )
    assert right == pytest.approx(0, abs=1e-9)
    assert wrong == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    ("probability", "weights", "at", "width", "expected"),
    [
        # At p = 0.5 ± 0.05 equal weights, so the mean of hits 1 and 0; a weight of 3 on the hit
        # gives ¾. At 0.45
        # itself: densities e^0 and e^(−½), reflections are nothing there.
        ([0.45, 0.55], [1.0, 1.0], 0.5, 0.1, 0.5),
        ([0.45, 0.55], [3.0, 1.0], 0.5, 0.1, 0.75),
        ([0.45, 0.55], [1.0, 1.0], 0.45, 0.1, 1 / (1 + np.exp(-0.5))),
        # Reflection keeps mass at the edge: at mesh point 0 every kernel is met by its own image,
        # so both weigh double;
        # at 0.1 that at 0 weighs 2·e^(−½) (its image lies on itself) and that at 0.2 weighs e^(−½)
        # + e^(−4.5).
        ([0.0, 0.2], [1.0, 1.0], 0.1, 0.1, 2 * np.exp(-0.5) / (3 * np.exp(-0.5) + np.exp(-4.5))),
        # Far from all predictions the nearest one decides.
        ([0.02, 0.01], [1.0, 1.0], 1.0, 0.002, 1.0),
    ],
)
def test_smoothing_a_hit_and_a_miss_worked_by_hand(
    probability: list[float], weights: list[float], at: float, width: float, expected: float
) -> None:
    found = smooth_hits_over_probabilities(
        np.array(probability), np.array([1.0, 0.0]), np.array([weights]), np.array([at]), width
    )
    assert found[0, 0] == pytest.approx(expected, abs=1e-9)


def test_a_diagram_has_a_band_and_bins() -> None:
    proba, answer = drawn(200)
    diagrams = make_reliability_diagrams(proba, answer, np.arange(200) // 2, (1.0, 2.0, 3.0))
    assert [diagram.value for diagram in diagrams] == [1.0, 2.0, 3.0]
    for place, diagram in enumerate(diagrams):
        assert (diagram.low < diagram.curve).all()
        assert (diagram.curve < diagram.high).all()
        assert [share.share.n for share in diagram.bins] == [25] * 8
        assert np.mean([b.predicted for b in diagram.bins]) == pytest.approx(proba[:, place].mean())
        assert np.mean([b.share.value for b in diagram.bins]) == pytest.approx(
            (answer == place).mean()
        )  # type: ignore[arg-type]
    assert diagrams[0].density.mean() == pytest.approx(1)


def test_an_interval_of_a_share_by_hand_holds_in_an_empty_bin_too() -> None:
    # z² = 3.8415; center (0.5 + 0.19207) / 1.38415 = 0.5; half 1.96·√(0.025 + 0.0096036) / 1.38415
    # = 0.26341. Of none or all, center and half are both z²/(2n) / (1 + z²/n) = 0.19207 / 1.38415.
    for share, expected in (
        (0.5, (0.23659, 0.76341)),
        (0.0, (0.0, 0.27754)),
        (1.0, (0.72246, 1.0)),
    ):
        assert compute_wilson_bounds(share, 10) == pytest.approx(expected, abs=1e-5)
    (_, never) = make_reliability_diagrams(
        np.tile([0.9, 0.1], (10, 1)), np.zeros(10, int), np.arange(10), (0.0, 1.0)
    )
    assert (never.bins[0].share.low, never.bins[0].share.high) == pytest.approx(
        (0.0, 0.27754), abs=1e-5
    )
    # The kernel is as wide as smECE finds it; at 0.1, where all predictions are, all ten weigh
    # alike.
    assert never.high[10] == pytest.approx(0.27754, abs=1e-5)


def test_judgments_of_one_text_tell_no_more_than_one() -> None:
    answer = np.arange(40) // 4 % 2
    text = np.arange(40) // 4
    (_, four) = make_reliability_diagrams(np.full((40, 2), 0.5), answer, text, (0.0, 1.0))
    (one,) = bin_predictions_by_probability(np.full(40, 0.5), answer == 0, text)
    for share in (four.bins[0].share, one.share):
        assert (share.n, share.units) == (40, 10)
        assert (share.low, share.high) == pytest.approx(compute_wilson_bounds(0.5, 10))
    assert (four.low[50], four.high[50]) == pytest.approx(compute_wilson_bounds(0.5, 10))


@pytest.mark.parametrize(
    ("options", "texts"), [((1.0, 4.0), 100), ((1.0, 12.0), 100), ((2.0, 2.0), 50)]
)
def test_bins_of_true_probabilities_hold_them_nineteen_times_of_twenty(
    options: tuple[float, float], texts: int
) -> None:
    draw = np.random.default_rng(0)
    held = []
    for _ in range(30):
        p = draw.beta(*options, texts)
        bins = bin_predictions_by_probability(
            p, (draw.random(texts) < p).astype(float), np.arange(texts)
        )
        held += [each.share.low <= each.predicted <= each.share.high for each in bins]  # type: ignore[operator]
    assert 0.92 < np.mean(held) < 0.99


def test_bins_hold_equal_numbers_in_the_order_of_probability_and_equal_ones_stay_together() -> None:
    probabilities = np.linspace(0.99, 0.01, 40)
    bins = bin_predictions_by_probability(probabilities, probabilities > 0.5, np.arange(40))
    assert [(each.share.n, each.share.value) for each in bins] == [
        (10, 0),
        (10, 0),
        (10, 1),
        (10, 1),
    ]
    assert bins[0].predicted == pytest.approx(np.sort(probabilities)[:10].mean())
    bins = bin_predictions_by_probability(
        np.array([0.2] * 25 + [0.9] * 5), np.array([True, False] * 15), np.arange(30)
    )
    assert [(each.share.n, round(each.predicted, 6)) for each in bins] == [(25, 0.2), (5, 0.9)]
    rng = np.random.default_rng(0)
    bins = bin_predictions_by_probability(rng.random(1003), rng.random(1003) < 0.5, np.arange(1003))
    assert (sum(each.share.n for each in bins), len(bins)) == (1003, MAX_RELIABILITY_BINS)
    assert bin_predictions_by_probability(np.empty(0), np.empty(0, bool), np.empty(0, int)) == []
