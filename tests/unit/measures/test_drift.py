"""Drift is marked where there is some, and not where chance alone makes a difference."""

import numpy as np
import pytest

from pollex.measures.drift import expected_log_loss, index, stability


def test_the_index_is_the_formula_worked_by_hand() -> None:
    p, q = np.array([50.5, 50.5]) / 101, np.array([75.5, 25.5]) / 101
    assert index(np.array([50.0, 50.0]), np.array([75.0, 25.0])) == pytest.approx(((q - p) * np.log(q / p)).sum())


def test_samples_of_one_population_are_seldom_marked() -> None:
    rng = np.random.default_rng(0)
    marked = sum(stability(rng.normal(size=400), rng.normal(size=200), rng, 200).marked for _ in range(100))
    assert marked <= 8


def test_a_population_that_moved_is_marked() -> None:
    rng = np.random.default_rng(1)
    found = stability(rng.normal(size=500), rng.normal(0.6, 1, size=500), rng)
    assert found.marked
    assert found.value > 0.2


def test_a_value_that_is_always_the_same_has_no_drift() -> None:
    rng = np.random.default_rng(2)
    assert not stability(np.ones(100), np.ones(50), rng).marked


def test_sure_probabilities_foretell_no_loss() -> None:
    assert expected_log_loss(np.array([0.0, 1.0])) == 0
    assert expected_log_loss(np.array([0.5])) == pytest.approx(np.log(2))
