"""Numbers as a person writes them. What is undefined is said in words, never as NaN, None or 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeGuard

from pollex.rubrics.records import Figure

MINUS = "\N{MINUS SIGN}"
SPACE = "\N{NO-BREAK SPACE}"


def known(value: float | None) -> TypeGuard[float]:
    """Whether there is a number at all."""
    return value is not None and math.isfinite(value)


def number(value: float | None, digits: int = 2, *, signed: bool = False) -> str:
    """A decimal number with a real minus sign."""
    if not known(value):
        return "undefined"
    rounded = round(value, digits) + 0.0  # no −0.00
    return f"{rounded:{'+' if signed and rounded else ''}.{digits}f}".replace("-", MINUS)


def percent(value: float | None) -> str:
    """A share as a whole percentage."""
    if not known(value):
        return "undefined"
    return f"{100 * value:.0f}{SPACE}%"


def interval(figure: Figure, digits: int = 2) -> str:
    """The 95 % interval, or why there is none."""
    if not known(figure.value):
        return figure.undefined or "undefined"
    if not (known(figure.low) and known(figure.high)):
        return "too few for an interval"
    return f"{number(figure.low, digits)} to {number(figure.high, digits)}"


def percent_interval(figure: Figure) -> str:
    """The 95 % interval of a share in words: `95 % interval 54–80 %`."""
    if not (known(figure.low) and known(figure.high)):
        return "too few for an interval"
    return f"95{SPACE}% interval {100 * figure.low:.0f}–{100 * figure.high:.0f}{SPACE}%"


def points(value: float | None) -> str:
    """A difference of shares in percentage points, signed."""
    if not known(value):
        return "undefined"
    return number(100 * value, 0, signed=True)


def count(n: int, noun: str, plural: str = "") -> str:
    """`1 rubric`, `2 rubrics`, `1,200 rubrics`."""
    return f"{n:,}{SPACE}{noun if n == 1 else plural or noun + 's'}"


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
