from __future__ import annotations

import numpy as np
import pytest
import relplot
from relplot.kernels import ReflectedGaussianKernel

from pollex.calibration.intervals import Measured, with_interval
from pollex.calibration.reliability import reliability, smece, smoothed


def drawn(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(3), n)
    return proba, np.array([rng.choice(3, p=row) for row in proba])


def test_one_judgment_has_no_error_and_no_diagram() -> None:
    proba, answer = drawn(1)
    mean, each = smece(proba, answer, np.zeros(1, int), np.random.default_rng(0))
    assert mean == Measured(None, None, None, 1, 1, "fewer than two judgments")
    assert each == [mean] * 3
    assert reliability(proba, answer, np.zeros(1, int), (1.0, 2.0, 3.0)) == []


def test_the_error_of_each_answer_is_that_of_the_authors_package() -> None:
    proba, answer = drawn(150)
    mean, each = smece(proba, answer, np.arange(150))
    expected = [relplot.smECE(proba[:, k], (answer == k).astype(float)) for k in range(3)]
    assert [error.value for error in each] == pytest.approx(expected, abs=1e-12)
    assert mean.value == pytest.approx(np.mean(expected))
    assert mean.low is None


def test_the_interval_is_the_percentiles_mirrored_at_the_value() -> None:
    proba, answer = drawn(80)
    mean, each = smece(proba, answer, np.arange(80), np.random.default_rng(1), 12)
    rng = np.random.default_rng(1)
    picks = rng.integers(80, size=(12, 80))
    copies = [np.sort(row) for row in picks]
    draws = [relplot.smECE(proba[rows, 0], (answer[rows] == 0).astype(float)) for rows in copies]
    low, high = np.quantile(draws, [0.025, 0.975])
    value = each[0].value
    assert value is not None
    assert low < value  # so that nothing had to be drawn out
    assert (each[0].low, each[0].high) == pytest.approx((max(0, 2 * value - high), 2 * value - low))
    assert mean.low is not None
    assert mean.low >= 0


@pytest.mark.parametrize(
    ("draws", "expected"),
    [
        ([0.3, 0.3], (0.1, 0.2)),  # mirrored: 0.1 and 0.1, both under the value
        ([0.5, 0.5], (0.0, 0.2)),  # mirrored: -0.1
        ([0.1, 0.1], (0.2, 0.3)),  # both above it
        ([0.2, 0.2], (0.2, 0.2)),
    ],
)
def test_a_mirrored_interval_is_drawn_out_to_the_value(draws: list[float], expected: tuple[float, float]) -> None:
    found = with_interval(0.2, np.array(draws), 9, 9, kind="basic")
    assert (found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(6))
def test_the_interval_holds_the_value_where_every_resample_is_worse(seed: int) -> None:
    _, each = smece(np.tile([0.5, 0.5], (40, 1)), np.arange(40) % 2, np.arange(40), np.random.default_rng(seed), 8)
    for error in each:
        assert error.value == pytest.approx(0, abs=1e-9)  # half of them are right: no resample can have less
        assert error.low is not None
        assert error.high is not None
        assert error.low <= error.value <= error.high  # type: ignore[operator]


def test_a_constant_at_the_base_rate_has_no_error_and_one_beside_it_has() -> None:
    answer = np.array([0] * 30 + [1] * 70)
    right = smece(np.tile([0.3, 0.7], (100, 1)), answer, np.arange(100))[0].value
    wrong = smece(np.tile([0.5, 0.5], (100, 1)), answer, np.arange(100))[0].value
    assert right == pytest.approx(0, abs=1e-9)
    assert wrong == pytest.approx(0.2, abs=0.01)


def test_smoothing_two_points_worked_by_hand() -> None:
    # Kernel width 0.1 at p = 0.5 ± 0.05 of the mesh point: equal weights, so the mean of hits 1 and 0. A weight of 3 on
    # the hit gives ¾. At 0.45 itself: densities e^0 and e^(−½), reflections are nothing there.
    probability, hit = np.array([0.45, 0.55]), np.array([1.0, 0.0])
    found = smoothed(probability, hit, np.array([[1.0, 1.0], [3.0, 1.0]]), np.array([0.5, 0.45]), 0.1)
    assert found[:, 0] == pytest.approx([0.5, 0.75])
    assert found[0, 1] == pytest.approx(1 / (1 + np.exp(-0.5)), abs=1e-9)


def test_reflection_keeps_mass_at_the_edge_worked_by_hand() -> None:
    # At mesh point 0 every kernel is met by its own image, so both weigh double and the ratio stays; at 0.1 that at 0
    # weighs 2·e^(−½) (its image lies on itself) and that at 0.2 weighs e^(−½) + e^(−4.5).
    found = smoothed(np.array([0.0, 0.2]), np.array([1.0, 0.0]), np.ones((1, 2)), np.array([0.1]), 0.1)
    assert found[0, 0] == pytest.approx(2 * np.exp(-0.5) / (2 * np.exp(-0.5) + np.exp(-0.5) + np.exp(-4.5)), abs=1e-9)


def test_far_from_all_predictions_the_nearest_one_decides() -> None:
    found = smoothed(np.array([0.01, 0.02]), np.array([0.0, 1.0]), np.ones((1, 2)), np.array([1.0]), 0.002)
    assert found[0, 0] == pytest.approx(1)


def test_the_curve_is_that_of_the_authors_package() -> None:
    proba, answer = drawn(400)
    diagram = reliability(proba, answer, np.arange(400), (1.0, 2.0, 3.0), bins=4)[1]
    hit = (answer == 1).astype(float)
    _, width = relplot.smECE(proba[:, 1], hit, return_width=True)
    theirs, _ = ReflectedGaussianKernel(width).smooth(proba[:, 1], hit, diagram.mesh)
    crowded = diagram.density > 0.3
    assert diagram.width == width
    assert crowded.sum() > 50
    # Theirs rounds to a grid.
    assert diagram.curve[crowded] == pytest.approx(theirs[crowded], abs=0.005)
    assert diagram.low is diagram.high is None


def test_a_diagram_has_a_band_over_texts_and_bins_of_equal_size() -> None:
    proba, answer = drawn(200)
    text = np.arange(200) // 2
    diagrams = reliability(proba, answer, text, (1.0, 2.0, 3.0), np.random.default_rng(0), 200, 5)
    assert [diagram.value for diagram in diagrams] == [1.0, 2.0, 3.0]
    for place, diagram in enumerate(diagrams):
        assert diagram.low is not None
        assert diagram.high is not None
        crowded = diagram.density > 0.5
        assert (diagram.low <= diagram.curve)[crowded].all()
        assert (diagram.curve <= diagram.high)[crowded].all()
        assert [share.share.n for share in diagram.bins] == [20] * 10
        assert np.mean([b.predicted for b in diagram.bins]) == pytest.approx(proba[:, place].mean())
        assert np.mean([b.share.value for b in diagram.bins]) == pytest.approx((answer == place).mean())  # type: ignore[arg-type]
    assert diagrams[0].density.mean() == pytest.approx(1)


def test_fewer_judgments_than_bins_have_a_bin_each() -> None:
    proba, answer = drawn(3)
    assert len(reliability(proba, answer, np.arange(3), (1.0, 2.0, 3.0), bins=10)[0].bins) == 3
