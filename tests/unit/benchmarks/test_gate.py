"""The gate's simulation: looking daily shuts an equal release's gate too often, unless the interval allows for it."""

import numpy as np
import pytest
from gate import MEAN, at_every_look, at_one_look, drawn, shut_on


@pytest.mark.nightly
def test_daily_looks_raise_false_alarms_with_intervals_for_one_look_only() -> None:
    rng = np.random.default_rng(0)
    alarms = np.zeros(2)
    for _ in range(100):
        before = drawn(MEAN, 100, rng)
        after = drawn(MEAN, 150, rng)
        alarms += [
            shut_on(looks(before, after, 10)) is not None for looks in (at_one_look, at_every_look)
        ]
    assert alarms[0] > 5
    assert alarms[1] <= 5


def test_a_large_drop_shuts_the_gate_at_every_look() -> None:
    rng = np.random.default_rng(1)
    assert (
        shut_on(at_every_look(drawn(MEAN, 300, rng), drawn(MEAN - 0.3, 300, rng), 20)) is not None
    )
