"""A model's rubrics enter a set only as far as they lower the loss of conversations that they did not see."""

import numpy as np
import pytest

from pollex.agents.embedded.clues import StudiedLog
from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.signal import name_rubric_family
from pollex.conversations.logs import flag_positive_labels
from pollex.formats.read_logs import read_logs
from pollex.measures.arrays import Bools, Ints
from pollex.measures.classification import compute_auc
from pollex.rubrics.learning.choice import NO_MODEL_RUBRIC_NOTE, explain_no_model_rubric
from pollex.rubrics.learning.crossfit import Candidates, MixedPool, WeighedPool, make_candidates
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.rubric import ANSWERED_BY_BUILT_IN_JUDGE, Rubric
from pollex.selection.losses import MAX_EVAL_DIFFERENCE
from pollex.selection.prefix import compute_log_losses_of_logistic_fit, find_best_rubric_list_length

MODELS = 30
USEFUL = 8


@pytest.fixture(scope="module")
def built_in() -> tuple[Candidates, Bools]:
    """The built-in rubrics of the bicycle shop by one half of it, and which half that is."""
    log = sorted(read_logs("examples/bikes.jsonl").learnable, key=lambda one: one.text_hash)
    study = StudiedLog(log, Embedder())
    half = np.random.default_rng(0).random(len(log)) < 0.5
    pool = make_candidates(study.made(flag_positive_labels(log), half), log, "expected")
    rubrics = [
        rubric.model_copy(update={"answered_by": ANSWERED_BY_BUILT_IN_JUDGE})
        for rubric in pool.rubrics
    ]
    return Candidates(log, rubrics, pool.values, pool.answered, {}), half


def with_model(pool: Candidates, seed: int, strength: float) -> Candidates:
    """Add a model's rubrics, of which the first few tell thumbs apart, and the others answer at random."""
    rng = np.random.default_rng(seed)
    rubrics = [
        Rubric(id=f"model{n:02}", text=f"The model's {n}.", polarity="dsat", source="llm@1")
        for n in range(MODELS)
    ]
    odds = np.full((len(pool.labels), MODELS), 0.35)
    odds[:, :USEFUL] += np.where(pool.labels, -strength, strength)[:, None]
    values = np.where(rng.random(odds.shape) < odds, -MAX_EVAL_DIFFERENCE, 0.0)
    both = np.concatenate([values, pool.values], axis=1)
    return Candidates(
        pool.conversations, [*rubrics, *pool.rubrics], both, np.ones(both.shape, dtype=bool), {}
    )


def auc_elsewhere(weighed: WeighedPool, order: Ints, half: Bools) -> float:
    """Return the AUC of NetSAT on the half that nothing was chosen by."""
    return compute_auc(
        weighed.pool.values[np.ix_(~half, order)].sum(axis=1), weighed.pool.labels[~half]
    )


@pytest.mark.parametrize("seed", range(3))
def test_beside_a_model_that_answers_at_random_a_set_is_as_good_as_built_in_rubrics_alone(
    built_in: tuple[Candidates, Bools], seed: int
) -> None:
    pool, half = built_in
    alone = WeighedPool.of(pool, LearnSettings(), name_rubric_family)
    mixed = MixedPool.of(with_model(pool, seed, 0.0), LearnSettings(), name_rubric_family)
    order = mixed.order(half, 1.0, hints=True)
    before = auc_elsewhere(alone, alone.order(half, 1.0, hints=True), half)
    assert auc_elsewhere(mixed, order, half) > before - 0.02
    assert all(
        pool.rubrics[column - MODELS].leads for column in order.tolist() if column >= MODELS
    ), "no moods"
    assert explain_no_model_rubric(mixed, order) == (
        [] if np.isin(order, mixed.models).any() else [NO_MODEL_RUBRIC_NOTE]
    )


def test_rubrics_of_a_model_that_tell_thumbs_apart_enter_and_few_of_the_others_do(
    built_in: tuple[Candidates, Bools],
) -> None:
    pool, half = built_in
    mixed = MixedPool.of(with_model(pool, 0, 0.15), LearnSettings(), name_rubric_family)
    order = mixed.order(half, 1.0, hints=True)
    entered = order[np.isin(order, mixed.models)]
    assert (entered < USEFUL).sum() > len(entered) / 2
    assert explain_no_model_rubric(mixed, order) == []
    assert auc_elsewhere(mixed, order, half) > auc_elsewhere(mixed, order[:1], half) + 0.05


def test_an_order_is_followed_where_it_gains_two_standard_errors_or_nothing_else_is_there() -> None:
    rng = np.random.default_rng(0)
    none = np.full(100, 0.7)
    sure = none - 0.2 + 0.2 * rng.random(100)
    unsure = none + rng.normal(-0.01, 0.3, 100)
    assert unsure.mean() < none.mean()
    assert find_best_rubric_list_length(np.array([none, sure, none]), instead=True) == 1
    assert find_best_rubric_list_length(np.array([none, none, unsure]), instead=True) == 0
    assert find_best_rubric_list_length(np.array([none, none, unsure]), instead=False) == 2
    assert find_best_rubric_list_length(np.array([none, none + 0.1]), instead=False) == 0


def test_scores_that_point_the_wrong_way_lose_as_much_as_none() -> None:
    up = np.arange(100) < 70
    share = compute_log_losses_of_logistic_fit(np.zeros(100), up)
    assert share.mean() == pytest.approx(-(0.7 * np.log(0.7) + 0.3 * np.log(0.3)))
    assert np.array_equal(compute_log_losses_of_logistic_fit(np.where(up, -1.0, 1.0), up), share)
    assert compute_log_losses_of_logistic_fit(np.where(up, 1.0, -1.0), up).mean() < 0.05
