"""The paper's grid of settings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from pollex.calibration.network.sweep import SettingsGroup

UNITS = (10, 25, 50, 100)


BATCHES = (32, 64, 128, 256)


RATES = (1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2)


EPOCHS = (5, 10, 20, 30, 40, 50)


def grid(rates: Sequence[float] = RATES, epochs: Sequence[int] = EPOCHS) -> list[SettingsGroup]:
    """Return the whole grid, 16,128 settings in 64 families that differ in shape and batch."""
    return [
        SettingsGroup(h1, h2, batch, tuple(rates), tuple(epochs), tuple(epochs))
        for h1, h2, batch in product(UNITS, UNITS, BATCHES)
    ]
