"""Names for the arrays that figures are computed from."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
One = TypeVar("One")


def numbers_of(names: Iterable[Hashable]) -> Ints:
    """Give names numbers from 0 on, in the order in which they first come `[name]`."""
    places: dict[Hashable, int] = {}
    return np.array([places.setdefault(name, len(places)) for name in names], dtype=np.int64)


def some_of(given: Sequence[One], most: int, rng: np.random.Generator) -> list[One]:
    """Draw so many at random, in their order; all where there aren't more."""
    drawn = (
        range(len(given))
        if len(given) <= most
        else np.sort(rng.choice(len(given), most, replace=False)).tolist()
    )
    return [given[place] for place in drawn]
