"""Small drawings inside tables and lists: figures with their intervals on one scale, and shares."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from markupsafe import Markup

from pollex.measures.intervals import Figure
from pollex.reports.numbers import known, number
from pollex.reports.svg import Axis, diamond, disc, element, line, nice_step, rect, svg, text, tick_label

WIDTH = 150
ROW = 12
NARROWEST = 1e-6
"""The narrowest scale whose ends have different labels."""

UNIT = Axis(0.0, 1.0, 8, WIDTH - 8)


def scale_over(low: float, high: float) -> Axis:
    """Make a scale for small drawings."""
    return Axis(low, high, 8, WIDTH - 8)


def scale_of(figures: Iterable[Figure]) -> Axis:
    """Make one scale for all rows of a table, with 0 on it."""
    ends = [end for figure in figures for end in (figure.value, figure.low, figure.high) if known(end)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    step = nice_step(high - low if high - low >= NARROWEST else 1.0, 4)
    return scale_over(math.floor(low / step) * step, math.ceil(high / step) * step or step)


def axis(scale: Axis, values: Sequence[float] = ()) -> Markup:
    """Label a scale above a table's rows: at these values, else ends and 0."""
    places = dict.fromkeys(values or [scale.low, 0.0, scale.high])
    labels = [text(scale(value), 11, tick_label(round(value, 6)), "tick", "middle") for value in places]
    title = f"Axis from {tick_label(round(scale.low, 6))} to {tick_label(round(scale.high, 6))}"
    return svg(title, labels, width=WIDTH, height=14, class_="spark")


def whiskers(
    name: str, figures: Sequence[tuple[str, Figure | None]], scale: Axis = UNIT, reference: float | None = None
) -> Markup:
    """Draw figures with their intervals, one below another.

    Args:
        figures: By side (`training`, `held out`), from the top.
        reference: A value to compare with, for example chance: a dotted line.
    """
    given = [(side, figure) for side, figure in figures if figure is not None]
    said = ", ".join(f"{side} {number(figure.value)}" for side, figure in given)
    height, middle = ROW * len(figures) + 6, ROW * len(figures) / 2 + 3
    rows = [
        _whisker(figure, scale, 9.0 + ROW * row, side.replace(" ", "-"))
        for row, (side, figure) in enumerate(figures)
        if figure
    ]
    return svg(
        f"{name}: {said}",
        line(scale.start, middle, scale.end, middle, "grid"),
        None if reference is None else line(scale(reference), 0, scale(reference), height, "reference"),
        rows,
        width=WIDTH,
        height=height,
        class_="spark",
    )


def whisker(name: str, figure: Figure, scale: Axis) -> Markup:
    """Draw one figure with its interval beside 0."""
    return whiskers(name, [("held out", figure)], scale, 0.0)


def _whisker(figure: Figure, scale: Axis, y: float, class_: str) -> Markup | None:
    if not known(figure.value):
        return None
    mark = disc(scale(figure.value), y, class_)
    if not (known(figure.low) and known(figure.high)):
        return mark
    return element("g", line(scale(figure.low), y, scale(figure.high), y, f"whisker {class_}"), mark)


def trend(name: str, shares: Mapping[str, Figure]) -> Markup:
    """Draw shares in their order as a small line, with the band of their intervals; a single one as a dot."""
    points = [(at, one) for at, one in enumerate(shares.values()) if known(one.value)]
    high = max([one.high or one.value or 0.0 for _, one in points], default=0.0) or 1.0
    across = scale_over(0, max(len(points) - 1, 1))
    placed = [(across(at), one) for at, (_, one) in enumerate(points)]
    rows = [(x, *(18 - 16 * (end or 0.0) / high for end in (one.value, one.low, one.high))) for x, one in placed]
    band = [(x, top) for x, _, _, top in rows] + [(x, low) for x, _, low, _ in reversed(rows)]
    said = ", ".join(f"{period} {number(one.value)}" for period, one in shares.items())
    lines = [line(a[0], a[1], b[0], b[1], "trend") for a, b in pairwise(rows)]
    dots = [disc(x, y, "held-out", 2.0) for x, y, _, _ in rows[-1:]]
    shade = element("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in band), class_="band")
    return svg(
        f"{name}: {said or 'no scored run'}",
        shade if len(rows) > 1 else None,
        lines,
        dots,
        width=WIDTH,
        height=20,
        class_="spark",
    )


def share_bar(title: str, share: float) -> Markup:
    """Draw a share of 1 as a bar."""
    bars = rect(0, 2, 100, 8, "bar-rest"), rect(0, 2, 100 * share, 8, "bar-share")
    return svg(title, *bars, width=100, height=10, class_="share")


def two_means(positive: float | None, negative: float | None, scale: Axis) -> Markup:
    """Draw the mean answers of both classes on one scale."""
    marks = [(negative, diamond, "negative"), (positive, disc, "positive")]
    drawn = [mark(scale(value), 10, class_) for value, mark, class_ in marks if known(value)]
    said = f"Mean agreement: positive {number(positive, 1)}, negative {number(negative, 1)} of 10"
    return svg(said, line(scale.start, 10, scale.end, 10, "grid"), drawn, width=WIDTH, height=20, class_="spark")
