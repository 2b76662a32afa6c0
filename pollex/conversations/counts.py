"""Counts in sentences."""

from __future__ import annotations


def count(n: int, one: str, more: str = "") -> str:
    """`1 row is`, `2 rows are`: a number and what stands behind it.

    Args:
        one: Behind a 1.
        more: Behind every other number; `one` with an s when left out.
    """
    return f"{n} {one if n == 1 else more or one + 's'}"
