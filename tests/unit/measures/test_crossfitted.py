"""No probability is by a model that has seen its label."""

import numpy as np
import pytest

from pollex.measures.share import Labeled, share_at_random
from pollex.services.share import crossfitted


def noise(n: int, width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, width)), rng.random(n) < 0.7


def test_features_that_tell_nothing_predict_nothing_of_known_labels() -> None:
    found = []
    for seed in range(4):
        x, y = noise(120, 60, seed)
        p = crossfitted(x, np.ones(120, dtype=bool), y, np.random.default_rng(seed))
        found.append(np.corrcoef(p, y)[0, 1])
    assert np.mean(found) < 0.05  # a model of the same labels has over .5


def test_what_belongs_to_one_user_is_never_predicted_from_that_user() -> None:
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(30), 4)
    y = np.repeat(rng.random(30) < 0.5, 4)
    x = np.eye(30)[user]
    p = crossfitted(x, np.ones(120, dtype=bool), y, rng, user)
    assert np.corrcoef(p, y)[0, 1] < 0.1
    alone = crossfitted(x, np.ones(120, dtype=bool), y, rng)
    assert np.corrcoef(alone, y)[0, 1] > 0.9


def test_labels_that_are_all_alike_give_one_probability() -> None:
    x, _ = noise(40, 5, 0)
    p = crossfitted(x, np.arange(40) < 20, np.ones(40, dtype=bool), np.random.default_rng(0))
    assert np.ptp(p) < 0.05
    assert p.min() > 0.8


@pytest.mark.nightly
def test_intervals_of_crossfitted_probabilities_cover_what_they_should() -> None:
    n, hits, runs, truth = 60, 0, 60, 0.6
    rng = np.random.default_rng(1)
    for _ in range(runs):
        x = rng.normal(size=(300, 4))
        y = rng.random(300) < 1 / (1 + np.exp(-(x[:, 0] + np.log(truth / (1 - truth)))))
        known = rng.permutation(300) < n
        p = crossfitted(x, known, y, rng)
        found = share_at_random(Labeled(y[known], p[known], p[~known]))
        hits += found.low <= 0.583 <= found.high  # the mean of that logistic over x
    assert hits / runs >= 0.88  # models that had seen the labels would cover some 70 %
