"""Means and cumulative distributions of grades, and how far judges lie from people: by hand and against SciPy."""

from collections.abc import Sequence

import numpy as np
import pytest
from krippendorff import alpha
from scipy.stats import pearsonr, wasserstein_distance

from pollex.measures.correlations import make_interval_alpha_statistic
from pollex.measures.distributions import (
    _GradePair,
    compute_cumulative_shares_of_grades,
    estimate_areas_between_grade_distributions,
    estimate_grade_agreement,
    estimate_mean_grade,
)

NAN = float("nan")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("grades", "value", "n"), [([NAN, NAN], None, 0), ([7.0, NAN], 7.0, 1), ([9.0] * 8, 9.0, 8)]
)
def test_a_mean_of_no_grades_is_undefined_and_of_one_or_of_grades_that_are_all_alike_has_no_interval(
    grades: list[float], value: float | None, n: int
) -> None:
    found = estimate_mean_grade(np.array(grades), rng())
    assert (found.value, found.low, found.high, found.n) == (value, None, None, n)
    assert bool(found.undefined) == (value is None)


def test_a_mean_counts_no_missing_grade_and_its_interval_is_about_two_standard_errors_wide() -> (
    None
):
    grades = rng().integers(1, 11, 400).astype(float)
    given = np.concatenate([grades, [NAN] * 100])
    found = estimate_mean_grade(given, rng())
    before = given.copy()
    assert (found.value, found.n) == (pytest.approx(grades.mean()), 400)
    assert found.high - found.low == pytest.approx(2 * 1.96 * grades.std() / 20, rel=0.1)  # type: ignore[operator]
    assert found.low < grades.mean() < found.high  # type: ignore[operator]
    np.testing.assert_array_equal(given, before)


def test_right_grades_for_wrong_answers_have_no_area_and_no_agreement() -> None:
    human = np.repeat([2.0, 4.0, 6.0, 8.0], 10)
    turned = human[::-1].copy()
    found = estimate_grade_agreement(turned, human, rng())
    assert (
        estimate_areas_between_grade_distributions({"rules": turned}, human, rng())["rules"].value
        == 0.0
    )
    assert {name: one.value for name, one in found.items()} == pytest.approx(
        {"pearson": -1.0, "spearman": -1.0, "alpha": 1 - 79 * 40 * 20 / (160 * 1200 - 400**2)}
    )
    perfect = estimate_grade_agreement(human, human, rng())["alpha"]
    assert (perfect.value, perfect.low, perfect.n) == (1.0, None, 40)


def test_paired_agreement_counts_only_what_both_graded_and_is_undefined_where_all_is_alike() -> (
    None
):
    found = estimate_grade_agreement(
        np.array([1.0, 2.0, NAN, 5.0, 4.0]), np.array([2.0, 2.0, 9.0, NAN, 5.0]), rng()
    )
    assert {one.n for one in found.values()} == {3}
    assert found["pearson"].value == pytest.approx(pearsonr([1, 2, 4], [2, 2, 5])[0])
    alike = estimate_grade_agreement(np.full(4, 8.0), np.full(4, 8.0), rng())
    assert [one.value for one in alike.values()] == [None, None, None]
    assert estimate_grade_agreement(np.array([NAN]), np.array([1.0]), rng())["alpha"].undefined


def test_alpha_of_two_judges_and_areas_are_those_of_the_packages() -> None:
    x, y = rng().normal(5, 2, (2, 50)) + 1e6
    found = make_interval_alpha_statistic(x, y)(np.ones((1, 50)))[0]
    assert found == pytest.approx(
        alpha(np.stack([x, y]), level_of_measurement="interval"), abs=1e-6
    )
    judge = rng().normal(6, 2, 50)
    human = rng().integers(1, 11, 50).astype(float)
    area = estimate_areas_between_grade_distributions({"a": judge}, human, rng(), 10)["a"].value
    assert area == pytest.approx(wasserstein_distance(judge, human), abs=1e-9)


def test_a_cumulative_distribution_by_hand() -> None:
    levels = np.array([1.0, 5.0, 7.0, 10.0])
    assert compute_cumulative_shares_of_grades(
        np.array([7.0, NAN, 1.0, 8.5, 7.0]), levels
    ).tolist() == [
        0.25,
        0.25,
        0.75,
        1.0,
    ]
    assert np.isnan(compute_cumulative_shares_of_grades(np.array([NAN]), levels)).all()


def test_an_area_by_hand_also_with_swapped_grades() -> None:
    # F steps at 8 and 9, G at 7 and 9: they differ by 1/2 from 7 to 8 alone, and swapped F and G
    # are but exchanged.
    # Of 8 8 and 7 7 both have an 8 and a 7 with one text swapped.
    weights = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    for judge, human, expected in (
        ([8.0, 9.0], [7.0, 9.0], [0.5] * 3),
        ([8.0, 8.0], [7.0, 7.0], [1.0, 0, 0]),
    ):
        assert (
            estimate_areas_between_grade_distributions(
                {"rules": np.array(judge)}, np.array(human), rng()
            )["rules"].value
            == expected[0]
        )
        assert _GradePair.of(np.array(judge), np.array(human)).areas(weights).tolist() == expected


def graded_alike(draw: np.random.Generator, texts: int, means: Sequence[float]) -> list[np.ndarray]:
    """Grades of one text go together."""
    text = draw.normal(size=texts)
    return [
        np.clip(np.round(mean + 1.2 * (text + draw.normal(size=texts))), 1, 10) for mean in means
    ]


@pytest.mark.parametrize(("beside", "texts"), [(7.0, 30), (8.0, 20)])
def test_an_area_lies_in_its_interval_nineteen_times_of_twenty(beside: float, texts: int) -> None:
    draw = rng()
    held = []
    truth = wasserstein_distance(*graded_alike(draw, 400_000, [7.0, beside]))
    for _ in range(150):
        human, judge = graded_alike(draw, texts, [7.0, beside])
        found = estimate_areas_between_grade_distributions({"a": judge}, human, draw, 200)["a"]
        held.append(found.low <= truth <= found.high)  # type: ignore[operator]
    assert np.mean(held) > 0.9


def test_judges_of_whom_one_is_as_far_from_people_as_the_other_seldom_differ_by_more_than_noise() -> (
    None
):
    draw = rng()
    noise = []
    for _ in range(100):
        human, low, high, copy = [*graded_alike(draw, 40, [7.0, 6.5, 7.5]), draw.permutation(40)]
        for judges in ({"a": low, "b": high}, {"a": human, "b": human[copy]}):
            found = estimate_areas_between_grade_distributions(judges, human, draw, 200)["a - b"]
            noise.append(found.low <= 0 <= found.high)  # type: ignore[operator]
    assert np.mean(noise) > 0.9


@pytest.mark.parametrize(
    ("rules", "plain", "human", "n", "expected"),
    [
        ([8.0, 2.0, NAN, 5.0], [9.0, NAN, 1.0, 6.0], [8.0, 1.0, 1.0, 5.0], 2, (0.0, 1.0, -1.0)),
        ([8.0], [9.0], [6.0], 1, (2.0, 3.0, -1.0)),
        ([8.0, NAN], [NAN, 8.0], [8.0, 8.0], 0, (None, None, None)),
    ],
)
def test_only_texts_that_all_graded_count_in_a_comparison_and_fewer_than_five_give_no_interval(
    rules: list[float],
    plain: list[float],
    human: list[float],
    n: int,
    expected: tuple[float | None, ...],
) -> None:
    found = estimate_areas_between_grade_distributions(
        {"rules": np.array(rules), "plain": np.array(plain)}, np.array(human), rng()
    )
    assert list(found) == ["rules", "plain", "rules - plain"]
    assert tuple(figure.value for figure in found.values()) == pytest.approx(expected)
    assert {(figure.n, figure.low) for figure in found.values()} == {(n, None)}
    assert {figure.undefined for figure in found.values()} == {"" if n else "no grades in common"}


def test_a_clear_difference_has_an_interval_without_0_and_none_has_one_with_it() -> None:
    human = rng().integers(2, 8, 200).astype(float)
    before = human.copy()
    found = estimate_areas_between_grade_distributions(
        {"near": rng(1).permutation(human), "far": human + 3, "same": human}, human, rng()
    )
    clear = found["near - far"]
    none = found["near - same"]
    assert clear.high < 0  # type: ignore[operator]
    assert none.low <= 0 <= none.high  # type: ignore[operator]
    np.testing.assert_array_equal(human, before)
