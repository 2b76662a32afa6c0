"""Which labels to ask for: V-optimal design, worked by hand and against brute force."""

import numpy as np
import pytest

from pollex.calibration.active_learning import (
    INTERCEPT_PRIOR_PRECISION,
    JUDGE_INTERCEPT_PRIOR_PRECISION,
    choose_texts_to_label_next,
    compute_relative_variance_of_prediction,
    make_vectors_for_choosing_labels,
    rank_unlabeled_texts_by_information,
)
from pollex.calibration.questionnaire import Questionnaire, Scale


def unknown(rows: int, judges: int = 1) -> np.ndarray:
    return np.zeros((rows, judges), dtype=bool)


def test_where_fewer_are_left_than_wanted_all_of_them_are_picked_once_and_nobody_who_cannot_be_asked() -> (
    None
):
    known = np.array([[True], [False], [False], [True]])
    found = choose_texts_to_label_next(np.arange(4.0)[:, None], np.full((4, 1), 0.25), known, 9)
    assert sorted(found.row.tolist()) == [1, 2]
    askable = unknown(4, 2)
    askable[2, 1] = True
    found = choose_texts_to_label_next(
        np.zeros((4, 1)), np.full((4, 2), 0.25), unknown(4, 2), 4, askable=askable
    )
    assert (found.row.tolist(), found.judge.tolist()) == ([2], [1])
    assert (
        len(choose_texts_to_label_next(np.zeros((1, 1)), np.full((1, 1), 0.25), ~unknown(1), 1))
        == 0
    )


def test_a_ranking_begins_with_the_picks_goes_on_as_if_these_had_labels_and_leaves_its_input_as_it_is() -> (
    None
):
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(30, 3))
    doubt = rng.uniform(0.01, 0.25, (30, 1))
    known = rng.random((30, 1)) < 0.2
    before = vectors.copy(), doubt.copy(), known.copy()
    ranked = rank_unlabeled_texts_by_information(vectors, doubt, known, 4)
    assert sorted(ranked.tolist()) == np.flatnonzero(~known).tolist()
    assert ranked[:4].tolist() == choose_texts_to_label_next(vectors, doubt, known, 4).row.tolist()
    assert all(np.array_equal(a, b) for a, b in zip(before, (vectors, doubt, known), strict=True))
    known[ranked[:4]] = True
    alone = [
        choose_texts_to_label_next(
            vectors, doubt, known, 1, askable=np.arange(30)[:, None] == row
        ).fall[0]
        for row in ranked[4:]
    ]
    assert alone == sorted(alone, reverse=True)


@pytest.mark.parametrize("judges", [1, 3])
def test_every_pick_is_the_one_that_brute_force_finds(judges: int) -> None:
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(12, 3))
    doubt = rng.uniform(0.02, 0.25, size=(12, judges))
    known = rng.random((12, judges)) < 0.2
    own = judges if judges > 1 else 0

    def z(row: int, judge: int) -> np.ndarray:
        return np.concatenate([[1.0], vectors[row], np.eye(judges)[judge][:own]])

    pairs = [(row, judge) for row in range(12) for judge in range(judges)]
    precision = np.diag(
        [INTERCEPT_PRIOR_PRECISION, *np.ones(3), *np.full(own, JUDGE_INTERCEPT_PRIOR_PRECISION)]
    )
    for row, judge in pairs:
        precision += known[row, judge] * doubt[row, judge] * np.outer(z(row, judge), z(row, judge))

    def spread(precision: np.ndarray) -> float:
        covariance = np.linalg.inv(precision)
        return float(np.mean([doubt[p] ** 2 * z(*p) @ covariance @ z(*p) for p in pairs]))

    found = choose_texts_to_label_next(vectors, doubt, known, 4)
    taken: set[int] = set()
    for row, judge, fall in zip(
        found.row.tolist(), found.judge.tolist(), found.fall.tolist(), strict=True
    ):
        left = [p for p in pairs if not known[p] and p[0] not in taken]
        after = {p: spread(precision + doubt[p] * np.outer(z(*p), z(*p))) for p in left}
        assert (row, judge) == min(after, key=after.__getitem__)
        assert fall == pytest.approx(spread(precision) - after[row, judge])
        precision += doubt[row, judge] * np.outer(z(row, judge), z(row, judge))
        taken.add(row)


def test_the_least_certain_comes_first_and_what_is_like_the_known_last() -> None:
    probability = np.array([0.05, 0.5, 0.8, 0.99])
    found = choose_texts_to_label_next(
        np.ones((4, 2)), (probability * (1 - probability))[:, None], unknown(4), 4
    )
    assert found.row.tolist() == [1, 2, 0, 3]
    assert (np.diff(found.fall) < 0).all()
    vectors = np.repeat([[3.0, 0.0], [0.0, 3.0]], 3, axis=0)
    assert (
        choose_texts_to_label_next(
            vectors, np.full((6, 1), 0.25), np.arange(6)[:, None] < 2, 1
        ).row[0]
        >= 3
    )
    known = unknown(30, 2)
    known[:20, 0] = True
    judges = choose_texts_to_label_next(np.zeros((30, 1)), np.full((30, 2), 0.25), known, 3)
    assert judges.judge.tolist() == [1, 1, 1]  # of whom nothing is known
    assert len(set(judges.row.tolist())) == 3


def test_vectors_are_standardized_cut_off_and_know_missing_and_constant_columns() -> None:
    columns = np.array([[1.0, 7.0, np.nan], [3.0, 7.0, 2.0], [1.0, 7.0, 4.0], [3.0, 7.0, np.nan]])
    found = make_vectors_for_choosing_labels(columns) * np.sqrt(3) / 3
    assert found == pytest.approx(np.array([[-1, 0, 0], [1, 0, -1], [-1, 0, 1], [1, 0, 0]]))
    assert make_vectors_for_choosing_labels(1e9 * np.eye(100)[:, :1])[0] == pytest.approx([9.0])


@pytest.mark.parametrize("width", [20, 80])
def test_embeddings_enter_by_their_principal_components(width: int) -> None:
    rng = np.random.default_rng(2)
    hidden = rng.normal(size=(50, 2)) * [5.0, 1.0]
    embeddings = hidden @ np.linalg.qr(rng.normal(size=(width, width)))[0][:2]
    found = make_vectors_for_choosing_labels(np.zeros((50, 1)), embeddings)
    assert found.shape == (50, 3)
    assert abs(np.corrcoef(found[:, 1], hidden[:, 0])[0, 1]) > 0.99
    assert found[:, 1:].std() == pytest.approx(3 / np.sqrt(2), rel=1e-6)
    assert make_vectors_for_choosing_labels(np.zeros((5, 1)), np.ones((5, width))).shape == (5, 1)


@pytest.mark.parametrize(
    ("scale", "proba", "doubt"),
    [
        (Scale("thumb", (0.0, 1.0)), [[0.5, 0.5], [0.9, 0.1]], [0.25, 0.09]),
        (
            Scale("grade", (1.0, 2.0, 5.0)),
            [[0.5, 0, 0.5], [0, 1, 0], [0.5, 0.5, 0]],
            [0.25, 0, 0.25 / 16],
        ),
        (Scale("kind", (1.0, 2.0, 3.0), ordinal=False), [[1, 0, 0], [0.5, 0.5, 0]], [0, 0.25]),
    ],
)
def test_the_doubt_of_a_thumb_is_p_times_1_less_p_and_of_grades_a_share_of_their_range(
    scale: Scale, proba: list[list[float]], doubt: list[float]
) -> None:
    questions = Questionnaire((scale,), scale.question)
    assert compute_relative_variance_of_prediction(np.array(proba), questions) == pytest.approx(
        doubt
    )
