"""Plots as inline SVG. Colours come from the page's style by class name, so that they follow dark mode and print.

A panel is as wide as a phone; two of them stand side by side on a screen. No text in it gets unreadably small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pollex.web.markup import Child, Markup, tag
from pollex.web.words import MINUS

WIDTH, HEIGHT = 360, 236
LEFT, RIGHT, TOP, BOTTOM = 40, 10, 24, 36


@dataclass(frozen=True)
class Scale:
    """A straight line from values `low` … `high` to pixels `start` … `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start)


def nice_step(span: float, count: int) -> float:
    """The step of 1, 2, 2.5 or 5 times a power of ten that cuts `span` into at most `count` parts."""
    if not (span > 0 and math.isfinite(span)):
        return 1.0
    power = 10.0 ** math.floor(math.log10(span / count))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power * count >= span * (1 - 1e-9))


def ticks(low: float, high: float, count: int = 8) -> list[float]:
    """Round values within `low` … `high`, about `count` of them."""
    step = nice_step(high - low, count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


def svg(title: str, *parts: Child, width: int = WIDTH, height: int = HEIGHT, class_: str = "panel") -> Markup:
    """A drawing with a title for those who can't see it."""
    return tag("svg", tag("title", title), *parts, viewBox=f"0 0 {width} {height}", class_=class_, role="img")


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line in pixels."""
    return tag("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=class_)


def rect(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A rectangle between two corners in pixels."""
    return tag("rect", x=min(x1, x2) + 0.0, y=min(y1, y2) + 0.0, width=abs(x2 - x1), height=abs(y2 - y1), class_=class_)


def text(x: float, y: float, words: Child, class_: str = "", anchor: str = "start") -> Markup:
    """Words at a place in pixels."""
    return tag("text", words, x=float(x), y=float(y), class_=class_ or None, text_anchor=anchor)


def disc(x: float, y: float, class_: str, radius: float = 4.0) -> Markup:
    """A round mark: positive conversations, and held-out figures."""
    return tag("circle", cx=float(x), cy=float(y), r=float(radius), class_=class_)


def diamond(x: float, y: float, class_: str, radius: float = 5.0) -> Markup:
    """A pointed mark: negative conversations."""
    corners = [(x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y)]
    return tag("path", d=f"{_path(corners)}Z", class_=class_)


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


@dataclass(frozen=True)
class Frame:
    """The inside of a panel: two scales, and what is drawn on them in values."""

    x: Scale
    y: Scale

    @classmethod
    def over(cls, xs: tuple[float, float], ys: tuple[float, float], height: int = HEIGHT) -> Frame:
        """A panel of these ranges."""
        return cls(Scale(*xs, LEFT, WIDTH - RIGHT), Scale(*ys, height - BOTTOM, TOP))

    def curve(self, xs: Sequence[float], ys: Sequence[float], class_: str) -> Markup:
        """A line through points."""
        points = [(self.x(x), self.y(y)) for x, y in zip(xs, ys, strict=True)]
        return tag("path", d=_path(points), class_=f"curve {class_}") if points else Markup()

    def bar(self, x1: float, x2: float, y1: float, y2: float, class_: str) -> Markup:
        """A bar with a hair's breadth to its neighbour."""
        return rect(self.x(x1) + 0.5, self.y(y1), self.x(x2) - 0.5, self.y(y2), class_)

    def band(self, low: float | None, high: float | None, class_: str) -> Markup:
        """A band over the full height; None reaches to the edge."""
        ends = [self._inside(low, self.x.low), self._inside(high, self.x.high)]
        return rect(self.x(ends[0]), self.y.start, self.x(ends[1]), self.y.end, class_)

    def _inside(self, value: float | None, edge: float) -> float:
        return edge if value is None else min(max(value, self.x.low), self.x.high)

    def upright(self, value: float, class_: str, label: Child = None) -> Markup:
        """A line over the full height, with its name above."""
        place = self.x(value)
        anchor = "end" if place > WIDTH * 0.85 else "start" if place < WIDTH * 0.2 else "middle"
        name = text(place, self.y.end - 8, label, "mark", anchor) if label else None
        return tag("g", line(place, self.y.start, place, self.y.end, class_), name)

    def level(self, value: float, class_: str) -> Markup:
        """A line over the full width."""
        return line(self.x.start, self.y(value), self.x.end, self.y(value), class_)

    def x_axis(self, name: str) -> Markup:
        """Tick labels under the panel, and what they measure."""
        values = ticks(self.x.low, self.x.high)
        labels = [text(self.x(value), self.y.start + 15, tick_label(value), "tick", "middle") for value in values]
        centre = (self.x.start + self.x.end) / 2
        return tag("g", labels, text(centre, self.y.start + 31, name, "axis-name", "middle"))

    def y_axis(self, values: Sequence[float]) -> Markup:
        """Grid lines with their labels on the left."""
        return tag("g", [[self.level(v, "grid"), self._y_label(v)] for v in values])

    def _y_label(self, value: float) -> Markup:
        return text(self.x.start - 6, self.y(value) + 4, tick_label(abs(value)), "tick", "end")


def tick_label(value: float) -> str:
    """A round value, as short as it goes."""
    return f"{value:g}".replace("-", MINUS)
