"""Formatting of numbers; an undefined number is a word, never NaN, None or 0."""

import math
from collections.abc import Sequence
from typing import TypeGuard

from pollex.measures.intervals import Figure

MINUS_SIGN = "\N{MINUS SIGN}"
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
INTERVAL_WORDS = f"95{NO_BREAK_SPACE}% interval"
SHARE_AXIS_MARKS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Marks of an axis of shares."""


def is_known(value: float | None) -> TypeGuard[float]:
    """Tell whether there is a number at all."""
    return value is not None and math.isfinite(value)


def format_number(value: float | None, digits: int = 2, *, signed: bool = False) -> str:
    """Write a decimal number with a real minus sign."""
    if not is_known(value):
        return "undefined"

    rounded = round(value, digits) + 0.0  # no −0.00
    return f"{rounded:{'+' if signed and rounded else ''}.{digits}f}".replace("-", MINUS_SIGN)


def format_percent(value: float | None) -> str:
    """Write a share as a whole percentage."""
    if not is_known(value):
        return "undefined"
    return f"{100 * value:.0f}{NO_BREAK_SPACE}%"


def make_percent_unbreakable(text: str) -> str:
    """Keep a percentage on one line."""
    return text.replace(" %", f"{NO_BREAK_SPACE}%")


def format_points(value: float | None) -> str:
    """Write a difference of shares as signed percentage points."""
    if not is_known(value):
        return "undefined"
    return format_number(100 * value, 0, signed=True)


def format_interval(
    figure: Figure, digits: int = 2, missing: str = "too few for an interval"
) -> str:
    """Write the 95 % interval, or why there is none."""
    if not is_known(figure.value):
        return figure.undefined or "undefined"
    if not (is_known(figure.low) and is_known(figure.high)):
        return missing
    return f"{format_number(figure.low, digits)} to {format_number(figure.high, digits)}"


def format_interval_in_words(
    figure: Figure,
    digits: int = 2,
    missing: str = "too few for an interval",
) -> str:
    """Write `95 % interval 0.44 to 0.51`, or why there is none."""
    bounds = format_interval(figure, digits, missing)
    # without an interval there are only words, and no level before them
    return f"{INTERVAL_WORDS} {bounds}" if is_known(figure.low) else bounds


def format_percent_interval(figure: Figure) -> str:
    """Write the 95 % interval of a share: `95 % interval 54–80 %`."""
    if not (is_known(figure.low) and is_known(figure.high)):
        return format_interval(figure)
    return f"{INTERVAL_WORDS} {100 * figure.low:.0f}–{100 * figure.high:.0f}{NO_BREAK_SPACE}%"


def format_grouped_count(n: int, noun: str, plural: str = "") -> str:
    """Write `1 rubric`, `2 rubrics`, `1,200 rubrics`."""
    return f"{n:,}{NO_BREAK_SPACE}{noun if n == 1 else plural or noun + 's'}"


def join_with_and(parts: Sequence[str]) -> str:
    """Write `a`, `a and b`, `a, b, and c`."""
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"
