"""Names for the arrays that figures are computed from."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Item = TypeVar("Item")


def assign_numbers_to_names(names: Iterable[Hashable]) -> Ints:
    """Give names numbers from 0 on, in the order in which they first come `[name]`."""
    places: dict[Hashable, int] = {}
    return np.array(
        [places.setdefault(name, len(places)) for name in names],
        dtype=np.int64,
    )


def draw_random_items_in_order(
    items: Sequence[Item],
    max_items: int,
    rng: np.random.Generator,
) -> list[Item]:
    """Draw so many at random, in their order; all where there aren't more."""
    if len(items) <= max_items:
        return list(items)

    places = np.sort(rng.choice(len(items), max_items, replace=False)).tolist()
    return [items[place] for place in places]
