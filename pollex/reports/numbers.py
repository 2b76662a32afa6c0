"""Formatting of numbers; an undefined number is a word, never NaN, None or 0."""

import math
from collections.abc import Sequence
from typing import TypeGuard

from pollex.measures.intervals import Figure

MINUS = "\N{MINUS SIGN}"
SPACE = "\N{NO-BREAK SPACE}"
LEVEL = f"95{SPACE}% interval"
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Marks of an axis of shares."""


def known(value: float | None) -> TypeGuard[float]:
    """Tell whether there is a number at all."""
    return value is not None and math.isfinite(value)


def number(value: float | None, digits: int = 2, *, signed: bool = False) -> str:
    """Write a decimal number with a real minus sign."""
    if not known(value):
        return "undefined"

    rounded = round(value, digits) + 0.0  # no −0.00
    return f"{rounded:{'+' if signed and rounded else ''}.{digits}f}".replace("-", MINUS)


def percent(value: float | None) -> str:
    """Write a share as a whole percentage."""
    if not known(value):
        return "undefined"
    return f"{100 * value:.0f}{SPACE}%"


def unbreak(text: str) -> str:
    """Keep a percentage on one line."""
    return text.replace(" %", f"{SPACE}%")


def points(value: float | None) -> str:
    """Write a difference of shares as signed percentage points."""
    if not known(value):
        return "undefined"
    return number(100 * value, 0, signed=True)


def interval(figure: Figure, digits: int = 2, missing: str = "too few for an interval") -> str:
    """Write the 95 % interval, or why there is none."""
    if not known(figure.value):
        return figure.undefined or "undefined"
    if not (known(figure.low) and known(figure.high)):
        return missing
    return f"{number(figure.low, digits)} to {number(figure.high, digits)}"


def interval_in_words(
    figure: Figure,
    digits: int = 2,
    missing: str = "too few for an interval",
) -> str:
    """Write `95 % interval 0.44 to 0.51`, or why there is none."""
    bounds = interval(figure, digits, missing)
    # without an interval there are only words, and no level before them
    return f"{LEVEL} {bounds}" if known(figure.low) else bounds


def percent_interval(figure: Figure) -> str:
    """Write the 95 % interval of a share: `95 % interval 54–80 %`."""
    if not (known(figure.low) and known(figure.high)):
        return interval(figure)
    return f"{LEVEL} {100 * figure.low:.0f}–{100 * figure.high:.0f}{SPACE}%"


def count(n: int, noun: str, plural: str = "") -> str:
    """Write `1 rubric`, `2 rubrics`, `1,200 rubrics`."""
    return f"{n:,}{SPACE}{noun if n == 1 else plural or noun + 's'}"


def listed(parts: Sequence[str]) -> str:
    """Write `a`, `a and b`, `a, b, and c`."""
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"
