import numpy as np
import pytest

from pollex.errors import BadLabels
from pollex.measures.classification import auc
from pollex.selection.alpha import choose_alpha
from pollex.selection.policies import select


def problem(seed: int = 0, n: int = 80, r: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    positive = rng.permutation(n) % 2 == 0
    values = np.clip(np.round(rng.normal(2, 1, (n, r)) + positive[:, None] * rng.uniform(-0.3, 0.8, r)), 0, 4) * 2.5
    return values, positive, np.ones(r, bool), [f"{i:02}" for i in range(r)]


def test_folds_that_leave_one_class_to_learn_from_are_refused() -> None:
    values, positive, sat, ids = problem()
    with pytest.raises(BadLabels):
        choose_alpha(values, positive, sat, ids, (3, 0), positive.astype(int))


def test_folds_of_single_conversations_have_no_auc_and_are_refused() -> None:
    values, positive, sat, ids = problem(n=8)
    with pytest.raises(BadLabels, match="no fold"):
        choose_alpha(values, positive, sat, ids, (3, 0), np.arange(8))


def test_every_alpha_is_measured_on_the_conversations_it_did_not_see() -> None:
    values, positive, sat, ids = problem()
    folds, alphas = np.arange(80) % 4, (0.0, 2.0)
    choice = choose_alpha(values, positive, sat, ids, (3, 0), folds, "greedy", alphas)
    for score, alpha in zip(choice.table, alphas, strict=True):
        aucs, held_out = [], np.empty(80)
        for fold in range(4):
            out = folds == fold
            selection = select(
                values[~out], positive[~out], sat, ids, (3, 0), alpha, np.random.default_rng(0), "greedy"
            )
            held_out[out] = selection.scores(values[out])
            aucs.append(auc(held_out[out], positive[out]))
        assert score.alpha == alpha
        assert score.folds == 4
        assert score.mean_auc == pytest.approx(np.mean(aucs), abs=1e-12)
        assert score.deviation == pytest.approx(np.std(aucs, ddof=1), abs=1e-12)
        if alpha == choice.alpha:
            assert choice.held_out == pytest.approx(held_out)
    assert choice.alpha == max(choice.table, key=lambda score: score.mean_auc).alpha


def test_a_fold_of_one_class_is_scored_but_left_out_of_the_mean() -> None:
    values, positive, sat, ids = problem()
    folds = np.arange(80) % 3
    folds[np.flatnonzero(positive)[:4]] = 9
    choice = choose_alpha(values, positive, sat, ids, (3, 0), folds)
    assert {score.folds for score in choice.table} == {3}
    assert np.isfinite(choice.held_out).all()


def test_equal_alphas_go_to_the_smallest_whatever_their_order() -> None:
    values, positive, sat, ids = problem(r=3)  # the budget takes all: every α chooses the same
    folds = np.arange(80) % 5
    assert choose_alpha(values, positive, sat, ids, (3, 0), folds, "greedy").alpha == 0.0
    assert choose_alpha(values, positive, sat, ids, (3, 0), folds, "greedy", (5.0, 0.5, 1.0)).alpha == 0.5


def test_one_fold_number_only_leaves_nothing_to_learn_from() -> None:
    values, positive, sat, ids = problem()
    with pytest.raises(BadLabels):
        choose_alpha(values, positive, sat, ids, (3, 0), np.zeros(80, int))
