"""How sure a cumulative link is of its terms, and learning more from there."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.special import expit

from pollex.calibration.cumulative_link import Terms, _Task, alike, distribution, learned, relearnt, unlearned
from pollex.calibration.fisher_information import information
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.measures.arrays import Bools, Floats, Ints

RATING = Questionnaire((Scale("clear", (1.0, 2.0, 3.0)), Scale("overall", (1.0, 2.0, 3.0), asked=False)), "overall")
JUDGES = np.array([0, 1, -1, 1, 0, -1])


def terms() -> Terms:
    """Four options, two inputs, two judges that differ in everything."""
    rng = np.random.default_rng(0)
    return Terms(
        start=np.array([-1.0]),
        gaps=np.log([1.0, 2.0]),
        slopes=np.array([1.0, 0.5]),
        intercepts=rng.normal(size=2),
        scales=rng.normal(size=2) / 3,
        judge_slopes=rng.normal(size=(2, 2)) / 3,
    )


def inputs() -> Floats:
    return np.random.default_rng(1).normal(size=(6, 2))


def every(shape: Terms) -> Bools:
    return np.ones(len(shape.packed()), dtype=bool)


def slope(F: Floats, judge: int, answer: int) -> Floats:
    """Of minus the log-likelihood of one judgment."""
    task = _Task(F[None], np.array([judge]), np.array([answer]), np.ones(1), terms())
    return task.loss(terms().packed())[1]


def test_a_judge_who_is_not_known_tells_nothing_of_judges() -> None:
    found = information(terms(), inputs(), np.full(6, -1)).dense(terms(), every(terms()))
    assert found[:5, :5].any()
    assert not found[5:].any()
    assert not found[:, 5:].any()


def test_the_information_is_the_mean_square_of_the_slope_over_what_may_be_answered() -> None:
    F, proba = inputs(), distribution(terms(), inputs(), JUDGES)
    wanted = np.zeros((13, 13))
    for row, option in np.ndindex(proba.shape):
        own = slope(F[row], int(JUDGES[row]), option)
        wanted += proba[row, option] * np.outer(own, own)
    found = information(terms(), F, JUDGES).dense(terms(), every(terms()))
    np.testing.assert_allclose(found, wanted, atol=1e-7)


def test_the_information_of_many_judgments_takes_no_block_a_judgment() -> None:
    many, width = 4_000, 30
    judges = np.arange(many) % 5
    shape = unlearned(np.full(4, 0.25), width, 5)
    F = np.random.default_rng(0).normal(size=(many, width))
    tracemalloc.start()
    try:
        local = information(shape, F, judges).blocks.shape[1]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < many * local**2 * F.itemsize / 2


def test_a_judge_s_block_is_what_the_own_judgments_tell_and_who_gave_none_tells_nothing() -> None:
    judges = np.array([2, -1, 0, 2, 0, -1, 2])
    shape = unlearned(np.full(4, 0.25), 3, 4)
    F = np.random.default_rng(0).normal(size=(len(judges), 3))
    together = information(shape, F, judges).blocks
    for judge in range(-1, 4):
        theirs = judges == judge
        alone = information(shape, F[theirs], judges[theirs]).blocks
        np.testing.assert_allclose(together[1 + judge], alone[1 + judge], rtol=1e-12)
        assert (alone.any(axis=(1, 2)) == ((np.arange(5) == 1 + judge) & theirs.any())).all()


def test_a_yes_or_no_tells_what_a_logistic_regression_does_worked_by_hand() -> None:
    found = unlearned(np.array([0.3, 0.7]), inputs=1, judges=0)
    told = information(found, np.array([[2.0]]), np.array([-1])).dense(found, np.ones(2, dtype=bool))
    # 0.3 · 0.7 times the outer product of (1, −2), for the cut and the slope
    np.testing.assert_allclose(told, [[0.21, -0.42], [-0.42, 0.84]], rtol=1e-9)


def test_terms_that_are_held_are_left_out() -> None:
    told = information(terms(), inputs(), JUDGES)
    free = np.random.default_rng(2).uniform(size=13) < 0.5
    full = told.dense(terms(), every(terms()))
    np.testing.assert_allclose(told.dense(terms(), free), full[np.ix_(free, free)])


def test_slopes_of_judges_that_are_held_take_no_place() -> None:
    free = np.arange(13) < 9
    wanted = information(terms(), inputs(), JUDGES).dense(terms(), free)
    lean = information(terms(), inputs(), JUDGES, own_slopes=False)
    assert lean.blocks.shape == (3, 7, 7)
    np.testing.assert_allclose(lean.dense(terms(), free), wanted)


def test_of_new_judges_nothing_is_known() -> None:
    told = information(terms(), inputs(), JUDGES)
    more = told.with_judges(3)
    assert not more.blocks[3].any()
    np.testing.assert_array_equal(more.blocks[:3], told.blocks)
    np.testing.assert_array_equal(told.and_of(told).blocks, 2 * told.blocks)


def ratings(rows: int, seed: int) -> tuple[Floats, Ints, Ints]:
    rng = np.random.default_rng(seed)
    F, judges = rng.normal(size=(rows, 2)), rng.integers(0, 2, rows)
    place = F @ [1.0, -0.5] + np.array([-0.5, 0.7])[judges] + rng.logistic(size=rows)
    return F, judges, np.digitize(place, [-1.0, 1.0]).astype(np.int64)


def test_a_prior_without_covariances_is_that_of_learning() -> None:
    F, judges, answers = ratings(60, seed=0)
    center = unlearned(np.full(3, 1 / 3), inputs=2, judges=2)
    precision = alike(center, (0.5, 0.5, 2.0, 3.0, 4.0, None))
    held = precision.packed()
    free = np.isfinite(held)
    wanted = learned(F, judges, answers, center, precision)
    found = relearnt(F, judges, answers, center, np.diag(1 / held[free]), free)
    np.testing.assert_allclose(found.packed(), wanted.packed(), atol=1e-4)
    assert not found.judge_slopes.any()


def test_learning_in_two_parts_comes_to_what_learning_at_once_does() -> None:
    F, judges, answers = ratings(1200, seed=1)
    center = unlearned(np.full(3, 1 / 3), inputs=2, judges=2)
    precision = alike(center, (0.1, 0.1, 1.0, 1.0, None, None))
    held = precision.packed()
    free = np.isfinite(held)
    first = learned(F[:600], judges[:600], answers[:600], center, precision)
    told = information(first, F[:600], judges[:600]).dense(first, free)
    covariance = np.linalg.inv(told + np.diag(held[free]))
    found = relearnt(F[600:], judges[600:], answers[600:], first, covariance, free)
    wanted = learned(F, judges, answers, center, precision)
    # no further apart than a tenth of a standard error
    errors = np.sqrt(np.diag(covariance))
    assert (np.abs(found.packed() - wanted.packed())[free] < 0.1 * errors).all()
    assert (np.abs(first.packed() - wanted.packed())[free] > 0.1 * errors).any()


def world(rows: int, severity: float, seed: int) -> tuple[Floats, Floats, list[str]]:
    rng = np.random.default_rng(seed)
    X = rng.dirichlet(np.ones(3), rows)
    place = 3 * (X @ [1, 2, 3] - 2) - severity * (np.arange(rows) % 2) + rng.logistic(size=rows)
    return X, 1.0 + (place > -1) + (place > 1), [("a", "b")[row % 2] for row in range(rows)]


def intercept(model: OrdinalMixedEffects, judge: str) -> float:
    return float(model.effects()["judges"][judge]["intercept"])


@pytest.mark.parametrize("drift", [0.0, 0.5, 5.0])
def test_a_judge_moves_the_more_the_more_judges_drift(drift: float) -> None:
    X, y, judges = world(200, severity=0, seed=0)
    new, harsh, who = world(20, severity=4, seed=1)
    moved = [
        intercept(OrdinalMixedEffects(drift=own).fit(X, y, judges, RATING).adapt(new, harsh, who), "b")
        for own in (drift, drift + 1)
    ]
    assert moved[1] < moved[0]


def test_what_was_learned_of_a_domain_is_remembered_in_the_next() -> None:
    """Adapted twice to the same, a model has moved further, and is surer than after once."""
    X, y, judges = world(100, severity=0, seed=0)
    new, harsh, who = world(30, severity=4, seed=1)
    first = OrdinalMixedEffects().fit(X, y, judges, RATING)
    once = first.adapt(new, harsh, who)
    twice = once.adapt(new, harsh, who)
    assert intercept(twice, "b") < intercept(once, "b") < intercept(first, "b")
    place = twice.questionnaire_.index()
    own = [model.information_[place].blocks[2].trace() for model in (first, once, twice)]
    assert own[0] < own[1] < own[2]


def test_the_information_is_finite_where_an_answer_is_all_but_impossible() -> None:
    far = unlearned(np.array([0.2, 0.3, 0.5]), inputs=1, judges=0)
    told = information(far, np.array([[500.0]]), np.array([-1]))
    assert np.isfinite(told.blocks).all()
    assert expit(far.cuts[0] - 0) == pytest.approx(0.2)
