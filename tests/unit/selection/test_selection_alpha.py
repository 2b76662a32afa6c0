import numpy as np
import pytest

from pollex.errors import BadLabels
from pollex.measures.classification import compute_auc
from pollex.selection.alpha import AlphaChoice, choose_alpha_by_cross_validation
from pollex.selection.policies import select_rubrics

ROWS = np.arange(80)


def problem(n: int = 80, r: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(0)
    positive = rng.permutation(n) % 2 == 0
    values = (
        np.clip(
            np.round(rng.normal(2, 1, (n, r)) + positive[:, None] * rng.uniform(-0.3, 0.8, r)), 0, 4
        )
        * 2.5
    )
    return values, positive, np.ones(r, bool), [f"{i:02}" for i in range(r)]


def choice_by(
    folds: np.ndarray, r: int = 12, alphas: tuple[float, ...] = (0.0, 2.0)
) -> AlphaChoice:
    return choose_alpha_by_cross_validation(
        *problem(len(folds), r), (3, 0), folds, "greedy", alphas
    )


def test_folds_that_leave_one_class_or_nothing_to_learn_from_or_have_no_auc_are_refused() -> None:
    for folds, message in (
        (problem()[1].astype(int), None),
        (np.zeros(80, int), None),
        (np.arange(8), "no fold"),
    ):
        with pytest.raises(BadLabels, match=message):
            choice_by(folds)


def test_every_alpha_is_measured_on_the_conversations_it_did_not_see() -> None:
    values, positive, sat, ids = problem()
    choice = choice_by(ROWS % 4)
    for score, alpha in zip(choice.table, (0.0, 2.0), strict=True):
        aucs = []
        held_out = np.empty(80)
        for fold in range(4):
            out = fold == ROWS % 4
            known = (values[~out], positive[~out], sat, ids)
            held_out[out] = select_rubrics(
                *known, (3, 0), alpha, np.random.default_rng(0), "greedy"
            ).scores(values[out])
            aucs.append(compute_auc(held_out[out], positive[out]))
        assert (score.alpha, score.folds) == (alpha, 4)
        assert (score.mean_auc, score.deviation) == pytest.approx(
            (np.mean(aucs), np.std(aucs, ddof=1)), abs=1e-12
        )
        if alpha == choice.alpha:
            assert choice.held_out == pytest.approx(held_out)
    assert choice.alpha == max(choice.table, key=lambda score: score.mean_auc).alpha


def test_a_fold_of_one_class_is_scored_but_left_out_of_the_mean() -> None:
    folds = ROWS % 3
    folds[np.flatnonzero(problem()[1])[:4]] = 9
    choice = choice_by(folds)
    assert {score.folds for score in choice.table} == {3}
    assert np.isfinite(choice.held_out).all()


def test_equal_alphas_go_to_the_smallest_whatever_their_order() -> None:
    # The budget takes all three: every α chooses the same.
    assert choice_by(ROWS % 5, 3).alpha == 0.0
    assert choice_by(ROWS % 5, 3, (5.0, 0.5, 1.0)).alpha == 0.5
