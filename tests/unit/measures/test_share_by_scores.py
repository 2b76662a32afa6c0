"""The share of good conversations by probabilities alone, and what its interval promises."""

import numpy as np

from pollex.measures.share import estimate_share_from_probabilities


def test_the_share_is_the_mean_probability_and_not_the_share_of_decisions() -> None:
    good = estimate_share_from_probabilities(np.array([0.6] * 9 + [0.1]), 0.0)

    assert good.value is not None
    assert np.isclose(good.value, 0.55)
    assert good.n == 10


def test_no_number_of_conversations_takes_the_calibrations_own_error_away() -> None:
    good = estimate_share_from_probabilities(np.full(1_000_000, 0.7), 0.03)

    assert good.low is not None
    assert good.high is not None
    assert np.allclose([good.low, good.high], [0.7 - 1.96 * 0.03, 0.7 + 1.96 * 0.03], atol=1e-4)


def test_the_interval_has_the_planted_share_in_nineteen_of_twenty_worlds() -> None:
    """Probabilities are off by what 200 labels leave open; the scored conversations are drawn anew."""
    rng = np.random.default_rng(5)
    held = []
    for _ in range(400):
        # two kinds of conversations, as often as each other
        labels = rng.random((200, 2)) < [0.5, 0.8]
        learned = labels.mean(axis=0)
        probability = learned[rng.integers(0, 2, 1000)]
        brier = (learned * (1 - learned)).mean()
        good = estimate_share_from_probabilities(probability, float(np.sqrt(brier / labels.size)))
        held.append(good.low <= 0.65 <= good.high)  # type: ignore[operator]

    assert np.mean(held) >= 0.93
