"""Values of a label field that are on no side: how many there are, and the options that take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pollex.conversations.conversation import Label
from pollex.conversations.logs import NOT_RATED
from pollex.errors import spelled
from pollex.formats.labels import NEITHER, THUMB_NUMBERS, as_number
from pollex.text import count

MOST_TOLD = 8
"""Values that a note lists."""
SCALES = (1, 2, 3, 5, 7, 10, 100)
"""Usual highest ratings."""

Said = Mapping[tuple[str, str], int]
"""Number of values by spelling and what they were taken for."""


def left_note(field: str, said: Said, *, compared: bool = False) -> list[str]:
    """Return a note on the values that were not taken; nothing where there are none.

    Args:
        compared: Whether the user gave bounds.
    """
    left = {value: n for (value, meant), n in said.items() if meant == NEITHER}
    if not left:
        return []
    most = sorted(left.items(), key=lambda one: -one[1])
    listed = ", ".join(f"{value} ({n})" for value, n in most[:MOST_TOLD])
    more = f" and {len(left) - MOST_TOLD} more values" if len(left) > MOST_TOLD else ""
    rows = count(sum(left.values()), "row counts", "rows count")
    begins = f"{field}:" if any(_taken(said).values()) else f"{field!r} holds ratings:"
    what = f"{begins} {listed}{more} {'is' if len(left) == 1 else 'are'} neither up nor down, and {rows} {NOT_RATED}"
    return [f"{what}; {_remedy(field, said, compared)}"]


def _remedy(field: str, said: Said, compared: bool) -> str:
    left = sorted(float(value) for value, meant in said if meant == NEITHER and as_number(value))
    if not left:
        return f"name the field inside: {spelled(label_field=f'{field}.NAME')}"
    if compared:
        return _on_either_side(positive=f">={left[0]:g}", negative=f"<={left[-1]:g}")
    low, high = bounds_of(sorted({float(value) for value, _ in said if as_number(value)}))
    taken = _taken(said)
    if not any(taken.values()) and not {f"{number:g}" for number in left} <= THUMB_NUMBERS:
        return f"to take them: {spelled(positive=f'>={high:g}', negative=f'<={low:g}')}"
    sides = {"positive": [one for one in left if one >= high], "negative": [one for one in left if one <= low]}
    undecided = not any(sides.values())
    rules = {side: [*taken[side], *(f"{one:g}" for one in left if undecided or one in sides[side])] for side in sides}
    options = {side: ",".join(values) for side, values in rules.items() if values}
    return _on_either_side(**options) if undecided else f"to take them: {spelled(**options)}"


def _on_either_side(positive: str, negative: str) -> str:
    return f"to take them: {spelled(positive=positive)} or {spelled(negative=negative)}"


def _taken(said: Said) -> dict[str, list[str]]:
    return {side.value: [value for value, meant in said if meant == side] for side in (Label.POSITIVE, Label.NEGATIVE)}


def bounds_of(ratings: Sequence[float]) -> tuple[float, float]:
    """Return up to where a rating is bad, and from where it is good: 2 and 4 of five stars, 4 and 7 of ten."""
    if ratings[0] < 0:
        return max(one for one in ratings if one < 0), min((one for one in ratings if one > 0), default=1)
    top = next((scale for scale in SCALES if ratings[-1] <= scale), ratings[-1])
    return (0.4, 0.7) if top == 1 else (top * 4 // 10 or ratings[0], -(-top * 7 // 10))
