"""Looking often raises no false alarms: bounds of looks that were planned."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import norm

from pollex.rooms.remedy.measures import looks
from pollex.rooms.remedy.measures.looks import (
    BETTER,
    GOING,
    NOTHING,
    WORSE,
    compute_alpha_of_proof,
    compute_conditional_power,
    compute_crossing_probability,
    compute_early_end_bounds,
    compute_equal_step_bounds,
    decide_at_look,
)


@pytest.fixture(scope="module", autouse=True)
def coarse_grid() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looks, "_GRID_POINTS", 201)
        for cached in (compute_equal_step_bounds, compute_early_end_bounds):
            cached.cache_clear()
        yield
    for cached in (compute_equal_step_bounds, compute_early_end_bounds):
        cached.cache_clear()


def test_the_last_bounds_are_the_published_constants_and_one_look_is_the_usual_test() -> None:
    """Jennison and Turnbull 2000, table 2.3."""
    for number, constant in ((1, 1.96), (2, 1.977), (3, 2.004), (4, 2.024), (5, 2.040)):
        bounds = compute_equal_step_bounds(number)
        assert bounds[-1] == pytest.approx(constant, abs=6e-4), number
        assert bounds[0] == pytest.approx(bounds[-1] * np.sqrt(number))


def test_a_proof_that_a_cap_ends_spends_what_the_function_has_for_its_fraction() -> None:
    """Lan and DeMets 1983: α(t) = 2 − 2Φ(1.96/√t); at the first look alone the bound is 1.96/√t itself."""
    assert compute_early_end_bounds(0, 0.16)[-1] == pytest.approx(1.96 / 0.4, abs=1e-3)
    strict = [compute_equal_step_bounds(4, alpha) for alpha in (0.05, 1e-6, 1e-10, 1e-14, 1e-30)]
    assert all(len(bounds) == 4 and max(bounds) < 40 for bounds in strict)
    assert [bounds[-1] for bounds in strict] == sorted(bounds[-1] for bounds in strict)
    for hardly_begun in (1e-6, 0.001, 0.01, 0.02):
        (bound,) = compute_early_end_bounds(0, hardly_begun)
        assert 10 < bound < 40, "nothing is proven by a handful of users, and nothing breaks"
    assert compute_early_end_bounds(2, 0.6)[:2] == compute_equal_step_bounds()[:2]
    spent = compute_crossing_probability(
        np.array(compute_early_end_bounds(2, 0.6)), np.array([0.25, 0.5, 0.6])
    )
    assert spent == pytest.approx(2 * norm.sf(1.96 / np.sqrt(0.6)), abs=1e-5)


def test_conditional_power_by_hand() -> None:
    """z 1 at half, the last bound 2: √.5·Z ≥ 2 − 1·√.5 − 1.4142·.5, so 1 − Φ(.8284)."""
    assert float(compute_conditional_power(np.array(1.0), 0.5, 2.0)) == pytest.approx(
        1 - norm.cdf(0.8284), abs=1e-4
    )


def test_an_effect_ends_a_proof_early_only_where_guardrails_are_cleared_and_harm_always() -> None:
    bounds = compute_equal_step_bounds()
    z = np.array([5.0, 5.0, -5.0, 0.2])
    clear = np.array([True, False, False, True])
    assert decide_at_look(z, 0, bounds, clear).tolist() == [BETTER, GOING, WORSE, GOING]
    assert decide_at_look(z, 1, bounds, clear).tolist() == [BETTER, GOING, WORSE, NOTHING]
    assert decide_at_look(z, 3, bounds, clear).tolist() == [BETTER, BETTER, WORSE, NOTHING]


def test_levels_of_proofs_on_the_same_conversations_stay_under_one() -> None:
    assert [compute_alpha_of_proof(times) for times in (1, 2, 3)] == [0.05, 0.025, 0.0125]
    assert sum(compute_alpha_of_proof(times) for times in range(2, 40)) <= 0.05
