import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pollex.errors import BadLabels
from pollex.selection.losses import theta_c
from pollex.selection.threshold import Window, fit_window


def test_one_class_has_no_window() -> None:
    with pytest.raises(BadLabels):
        fit_window(np.arange(3.0), np.ones(3, bool), 1.0)


def test_constant_scores_leave_everything_uncertain() -> None:
    window = fit_window(np.full(4, 5.0), np.array([True, True, False, False]), 5.0)
    assert window == Window(None, None, 0.9)
    assert not window.confident(np.array([-100, 5, 100])).any()


def test_the_window_of_eight_conversations_worked_by_hand() -> None:
    # Scores    0  1  2  3 | 4  5  6  7      θ = 3.5
    # labels    −  −  +  − | −  +  +  +
    # Prec− at 0.5, 1.5, 2.5, 3.5: 1, 1, 2/3, 3/4.  Prec+ at 3.5, 4.5: 3/4, 1.
    scores, positive = np.arange(8.0), np.array([0, 0, 1, 0, 0, 1, 1, 1], bool)
    assert fit_window(scores, positive, 3.5) == Window(1.5, 4.5, 0.9)
    assert fit_window(scores, positive, 3.5, precision=0.75) == Window(3.5, 3.5, 0.75)
    assert fit_window(scores, positive, 3.5, precision=0.7) == Window(3.5, 3.5, 0.7)


def test_a_dip_of_the_curve_below_the_lower_end_does_not_matter() -> None:
    # The lowest score is a positive's: Prec− climbs 0, ½, …, 9/10 at 9.5, where θ is.
    scores = np.arange(20.0)
    positive = np.array([True] + [False] * 9 + [True] * 10)
    window = fit_window(scores, positive, 9.5)
    assert window == Window(9.5, 9.5, 0.9)
    assert window.confident(scores).all()


def test_a_side_that_never_reaches_the_precision_is_none_and_never_confident() -> None:
    # Below θ = 3.5 positives and negatives alternate from a positive on; above, all are positive.
    scores, positive = np.arange(8.0), np.array([1, 0, 1, 0, 1, 1, 1, 1], bool)
    window = fit_window(scores, positive, 3.5)
    assert window == Window(None, 3.5, 0.9)
    assert window.confident(np.array([-50.0, 3.5, 3.6])).tolist() == [False, False, True]


def test_classes_apart_have_an_empty_window_at_theta() -> None:
    window = fit_window(np.array([0.0, 1, 8, 9]), np.array([False, False, True, True]), 4.5)
    assert window == Window(4.5, 4.5, 0.9)


def test_scores_that_differ_by_rounding_are_on_one_side() -> None:
    scores = np.array([0.3, 0.3 + 1e-12, 0.9, 1.0])
    window = fit_window(scores, np.array([False, True, True, True]), 0.55)
    assert window.lower is None


conversations = st.lists(st.tuples(st.integers(-20, 20).map(lambda x: x / 2), st.booleans()), min_size=2, max_size=40)


@given(conversations, st.sampled_from([0.6, 0.75, 0.9, 1.0]))
def test_outside_any_window_the_precision_holds_and_no_wider_window_would_do(
    pairs: list[tuple[float, bool]], precision: float
) -> None:
    scores, positive = np.array([s for s, _ in pairs]), np.array([up for _, up in pairs])
    assume(positive.any() and not positive.all())
    theta = theta_c(scores, positive)
    window = fit_window(scores, positive, theta, precision)
    lower = -np.inf if window.lower is None else window.lower
    upper = np.inf if window.upper is None else window.upper
    assert lower <= theta <= upper
    under, over = scores <= lower, scores > upper
    assert under.any() == (window.lower is not None)
    assert over.any() == (window.upper is not None)
    assert (~positive[under]).sum() >= precision * under.sum()
    assert positive[over].sum() >= precision * over.sum()
    for threshold in {*scores.tolist(), theta}:  # by the plain rule, no threshold nearer to θ keeps the promise
        under, over = scores <= threshold, scores > threshold
        if threshold <= theta and (scores[under] > lower).any():
            assert (~positive[under]).sum() < precision * under.sum()
        if threshold >= theta and over.any() and (scores[over] <= upper).any():
            assert positive[over].sum() < precision * over.sum()


def test_confident_is_at_or_under_the_lower_end_and_over_the_upper() -> None:
    assert Window(1.0, 2.0).confident(np.array([1.0, 1.5, 2.0, 2.1])).tolist() == [True, False, False, True]
