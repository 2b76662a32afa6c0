"""What a fitted estimator has learnt, to be kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class State:
    """All that a fitted estimator has learnt.

    Attributes:
        facts: JSON values.
        arrays: By name, for safetensors.
    """

    facts: dict[str, Any]
    arrays: dict[str, np.ndarray[Any, Any]]
