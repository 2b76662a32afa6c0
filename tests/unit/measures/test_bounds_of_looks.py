"""Bounds of looks: published constants, what is spent, and when a look ends a proof."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from pollex.measures.looks import (
    BETTER,
    GOING,
    NOTHING,
    WORSE,
    alpha_of,
    bounds_at_equal_steps,
    conditional_power,
    decided,
)


@pytest.mark.parametrize(("looks", "constant"), [(2, 1.977), (3, 2.004), (4, 2.024), (5, 2.040)])
def test_the_last_bounds_are_the_published_constants(looks: int, constant: float) -> None:
    """Jennison and Turnbull 2000, table 2.3."""
    bounds = bounds_at_equal_steps(looks)
    assert bounds[-1] == pytest.approx(constant, abs=6e-4)
    assert bounds[0] == pytest.approx(bounds[-1] * np.sqrt(looks))


def test_one_look_is_the_usual_test() -> None:
    assert bounds_at_equal_steps(1)[0] == pytest.approx(1.96, abs=1e-3)


def test_conditional_power_by_hand() -> None:
    """z 1 at half, the last bound 2: √.5·Z ≥ 2 − 1·√.5 − 1.4142·.5, so 1 − Φ(.8284)."""
    assert float(conditional_power(np.array(1.0), 0.5, 2.0)) == pytest.approx(1 - norm.cdf(0.8284), abs=1e-4)


def test_an_effect_ends_a_proof_early_only_where_guardrails_are_cleared_and_harm_always() -> None:
    bounds, z = bounds_at_equal_steps(), np.array([5.0, 5.0, -5.0, 0.2])
    clear = np.array([True, False, False, True])
    assert decided(z, 0, bounds, clear).tolist() == [BETTER, GOING, WORSE, GOING]
    assert decided(z, 1, bounds, clear).tolist() == [BETTER, GOING, WORSE, NOTHING]
    assert decided(z, 3, bounds, clear).tolist() == [BETTER, BETTER, WORSE, NOTHING]


def test_levels_of_proofs_on_the_same_conversations_stay_under_one() -> None:
    assert [alpha_of(times) for times in (1, 2, 3)] == [0.05, 0.025, 0.0125]
    assert sum(alpha_of(times) for times in range(2, 40)) <= 0.05
