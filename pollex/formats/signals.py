"""Further signals beside the label: what else a log tells of each conversation, each from a field of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pollex.conversations.conversation import BOUNDS, Label
from pollex.errors import BadInput
from pollex.formats.labels import Verdicts, as_number

SIDES = ("up", "down")


def named(signal: str) -> tuple[str, str]:
    """Split `retried:down` into the field and the side that a yes speaks for; without one the field holds ratings."""
    name, colon, side = signal.rpartition(":")
    return (name, side) if colon and side in SIDES else (signal, "")


def signals_in(values: Mapping[str, Any], signals: Iterable[str]) -> Iterator[tuple[str, bool | None]]:
    """Yield each signal that has a value, and whether it happened; None where the value tells nothing.

    Args:
        values: By the name of the field.
    """
    for signal in signals:
        name, side = named(signal)
        if values.get(name) is not None:
            try:
                label = _label(values[name], side)
            except BadInput:
                yield signal, None
                continue
            if label is not Label.NONE:
                yield signal, label is (Label.POSITIVE if side else Label.NEGATIVE)


def _label(value: object, side: str) -> Label:
    """Return what a value is: yes or no where a side is given, else a thumb, or stars where it is a number above 1."""
    number = as_number(value)
    if side and number:
        return Label.POSITIVE if float(number) > 0 else Label.NEGATIVE
    stars = not side and number and float(number) > 1
    return Verdicts.of(**(BOUNDS if stars else {"positive": None, "negative": None})).label(value)
