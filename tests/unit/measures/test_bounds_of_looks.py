"""Bounds of looks: published constants, what is spent, and when a look ends a proof."""

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
    bounds_to,
    conditional_power,
    crossing,
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


def test_a_proof_that_a_cap_ends_spends_what_the_function_has_for_its_fraction() -> None:
    """Lan and DeMets 1983: α(t) = 2 − 2Φ(1.96/√t); at the first look alone the bound is 1.96/√t itself."""
    assert bounds_to(0, 0.16)[-1] == pytest.approx(1.96 / 0.4, abs=1e-3)
    assert bounds_to(2, 0.6)[:2] == bounds_at_equal_steps()[:2]
    spent = crossing(np.array(bounds_to(2, 0.6)), np.array([0.25, 0.5, 0.6]))
    assert spent == pytest.approx(2 * norm.sf(1.96 / np.sqrt(0.6)), abs=1e-5)


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
