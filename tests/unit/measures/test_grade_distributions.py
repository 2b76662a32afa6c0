"""Means and cumulative distributions of grades, and how far judges lie from people: by hand and against SciPy."""

from collections.abc import Sequence

import numpy as np
import pytest
from krippendorff import alpha
from scipy.stats import pearsonr, wasserstein_distance

from pollex.measures.correlations import interval_alpha_statistic
from pollex.measures.distributions import _Pair, areas, cumulative, mean_grade, paired

NAN = float("nan")


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_mean_of_no_grades_is_undefined() -> None:
    found = mean_grade(np.array([NAN, NAN]), rng())
    assert (found.value, found.low, found.high, found.n) == (None, None, None, 0)
    assert found.undefined


def test_a_mean_of_one_grade_has_no_interval() -> None:
    found = mean_grade(np.array([7.0, NAN]), rng())
    assert (found.value, found.low, found.high, found.n) == (7.0, None, None, 1)


def test_a_mean_of_grades_that_are_all_alike_is_not_beyond_doubt() -> None:
    found = mean_grade(np.full(8, 9.0), rng())
    assert (found.value, found.low, found.high, found.n) == (9.0, None, None, 8)


def test_a_mean_counts_no_missing_grade_and_its_interval_is_about_two_standard_errors_wide() -> None:
    grades = rng().integers(1, 11, 400).astype(float)
    found = mean_grade(np.concatenate([grades, [NAN] * 100]), rng())
    assert found.value == pytest.approx(grades.mean())
    assert found.n == 400
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low == pytest.approx(2 * 1.96 * grades.std() / 20, rel=0.1)
    assert found.low < grades.mean() < found.high


def test_right_grades_for_wrong_answers_have_no_area_and_no_agreement() -> None:
    human = np.repeat([2.0, 4.0, 6.0, 8.0], 10)
    turned = human[::-1].copy()
    found = paired(turned, human, rng())
    assert areas({"rules": turned}, human, rng())["rules"].value == 0.0
    assert {name: one.value for name, one in found.items()} == pytest.approx(
        {"pearson": -1.0, "spearman": -1.0, "alpha": 1 - 79 * 40 * 20 / (160 * 1200 - 400**2)}
    )
    perfect = paired(human, human, rng())["alpha"]
    assert (perfect.value, perfect.low, perfect.n) == (1.0, None, 40)


def test_paired_agreement_counts_only_what_both_graded_and_is_undefined_where_all_is_alike() -> None:
    found = paired(np.array([1.0, 2.0, NAN, 5.0, 4.0]), np.array([2.0, 2.0, 9.0, NAN, 5.0]), rng())
    assert {one.n for one in found.values()} == {3}
    assert found["pearson"].value == pytest.approx(pearsonr([1, 2, 4], [2, 2, 5])[0])
    alike = paired(np.full(4, 8.0), np.full(4, 8.0), rng())
    assert [one.value for one in alike.values()] == [None, None, None]
    assert paired(np.array([NAN]), np.array([1.0]), rng())["alpha"].undefined


def test_alpha_of_two_judges_is_that_of_the_package() -> None:
    x, y = rng().normal(5, 2, (2, 50)) + 1e6
    found = interval_alpha_statistic(x, y)(np.ones((1, 50)))[0]
    assert found == pytest.approx(alpha(np.stack([x, y]), level_of_measurement="interval"), abs=1e-6)


def test_a_cumulative_distribution_by_hand() -> None:
    levels = np.array([1.0, 5.0, 7.0, 10.0])
    assert cumulative(np.array([7.0, NAN, 1.0, 8.5, 7.0]), levels).tolist() == [0.25, 0.25, 0.75, 1.0]
    assert np.isnan(cumulative(np.array([NAN]), levels)).all()


def test_an_area_by_hand() -> None:
    # F steps at 8 and 9, G at 7 and 9: they differ by 1/2 from 7 to 8 alone.
    found = areas({"rules": np.array([8.0, 9.0])}, np.array([7.0, 9.0]), rng())
    assert found["rules"].value == pytest.approx(0.5)


def test_an_area_with_swapped_grades_by_hand() -> None:
    # Of 8 9 and 7 9 F and G are but exchanged. Of 8 8 and 7 7 both have an 8 and a 7 with one text swapped.
    weights = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    pair = _Pair.of(np.array([8.0, 9.0]), np.array([7.0, 9.0]))
    assert pair.areas(weights).tolist() == [0.5, 0.5, 0.5]
    pair = _Pair.of(np.array([8.0, 8.0]), np.array([7.0, 7.0]))
    assert pair.areas(weights).tolist() == [1.0, 0.0, 0.0]


def graded_alike(draw: np.random.Generator, texts: int, means: Sequence[float]) -> list[np.ndarray]:
    """Grades of one text go together."""
    text = draw.normal(size=texts)
    return [np.clip(np.round(mean + 1.2 * (text + draw.normal(size=texts))), 1, 10) for mean in means]


@pytest.mark.parametrize(("beside", "texts"), [(7.0, 30), (7.5, 50), (8.0, 20)])
def test_an_area_lies_in_its_interval_nineteen_times_of_twenty(beside: float, texts: int) -> None:
    draw, held = np.random.default_rng(0), []
    truth = wasserstein_distance(*graded_alike(draw, 400_000, [7.0, beside]))
    for _ in range(150):
        human, judge = graded_alike(draw, texts, [7.0, beside])
        found = areas({"a": judge}, human, draw, 300)["a"]
        held.append(found.low <= truth <= found.high)  # type: ignore[operator]
    assert np.mean(held) > 0.9


def test_judges_of_whom_one_is_as_far_from_people_as_the_other_seldom_differ_by_more_than_noise() -> None:
    draw, noise = np.random.default_rng(0), []
    for _ in range(150):
        human, low, high, copy = [*graded_alike(draw, 40, [7.0, 6.5, 7.5]), draw.permutation(40)]
        for judges in ({"a": low, "b": high}, {"a": human, "b": human[copy]}):
            found = areas(judges, human, draw, 300)["a - b"]
            noise.append(found.low <= 0 <= found.high)  # type: ignore[operator]
    assert np.mean(noise) > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_areas_are_wasserstein_distances(seed: int) -> None:
    draw = np.random.default_rng(seed)
    judge, human = draw.normal(6, 2, 50), draw.integers(1, 11, 50).astype(float)
    assert areas({"a": judge}, human, rng(), 10)["a"].value == pytest.approx(
        wasserstein_distance(judge, human), abs=1e-9
    )


def test_only_texts_that_all_graded_count_in_a_comparison() -> None:
    judges = {"rules": np.array([8.0, 2.0, NAN, 5.0]), "plain": np.array([9.0, NAN, 1.0, 6.0])}
    found = areas(judges, np.array([8.0, 1.0, 1.0, 5.0]), rng())
    assert {figure.n for figure in found.values()} == {2}
    assert found["rules"].value == 0.0
    assert found["plain"].value == pytest.approx(1.0)
    assert found["rules - plain"].value == pytest.approx(-1.0)


def test_one_text_in_common_has_areas_without_intervals() -> None:
    found = areas({"rules": np.array([8.0]), "plain": np.array([9.0])}, np.array([6.0]), rng())
    values = {name: (figure.value, figure.low) for name, figure in found.items()}
    assert values == {"rules": (2.0, None), "plain": (3.0, None), "rules - plain": (-1.0, None)}


def test_without_grades_in_common_there_is_no_area() -> None:
    found = areas({"rules": np.array([8.0, NAN]), "plain": np.array([NAN, 8.0])}, np.array([8.0, 8.0]), rng())
    assert found.keys() == {"rules", "plain", "rules - plain"}
    assert all(figure.value is None and figure.undefined == "no grades in common" for figure in found.values())


def test_a_clear_difference_has_an_interval_without_0_and_none_has_one_with_it() -> None:
    human = rng().integers(2, 8, 200).astype(float)
    noise = np.random.default_rng(1).permutation(human)
    found = areas({"near": noise, "far": human + 3, "same": human}, human, rng())
    clear, none = found["near - far"], found["near - same"]
    assert clear.high is not None
    assert clear.high < 0
    assert none.low is not None
    assert none.high is not None
    assert none.low <= 0 <= none.high


def test_nothing_is_written_into_the_arguments() -> None:
    grades, human = np.array([8.0, NAN, 3.0]), np.array([7.0, 5.0, NAN])
    before = grades.copy(), human.copy()
    areas({"a": grades}, human, rng())
    mean_grade(grades, rng())
    np.testing.assert_array_equal(grades, before[0])
    np.testing.assert_array_equal(human, before[1])
