"""The hyper-parameters that the paper chooses among.

Source: Hashemi et al. 2024, section 4, doi:10.18653/v1/2024.acl-long.745.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from pollex.calibration.sweep import Family

UNITS = (10, 25, 50, 100)
BATCHES = (32, 64, 128, 256)
RATES = (1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2)
EPOCHS = (5, 10, 20, 30, 40, 50)


def grid(rates: Sequence[float] = RATES, epochs: Sequence[int] = EPOCHS) -> list[Family]:
    """The whole grid, 16,128 settings in 64 families that differ in shape and batch."""
    return [
        Family(h1, h2, batch, tuple(rates), tuple(epochs), tuple(epochs))
        for h1, h2, batch in product(UNITS, UNITS, BATCHES)
    ]
