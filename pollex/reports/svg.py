"""Drawings as inline SVG, and the only code that makes markup.

Colors come from the page's style by class name.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pollex.reports.numbers import MINUS_SIGN
from pollex.text import escape_controls

CHART_PANEL_WIDTH_PIXELS = 360
CHART_PANEL_HEIGHT_PIXELS = 236
LEFT_MARGIN = 40
RIGHT_MARGIN = 10
TOP_MARGIN = 24
BOTTOM_MARGIN = 36


def escape_markup(text: object) -> Markup:
    """Escape text: controls are visible, and nothing is a web address."""
    if isinstance(text, Markup):
        return text

    shown = html.escape(escape_controls(str(text), keep_lines=True))
    # A quoted address is shown in full, but no scanner of the file finds a link.
    return Markup(shown.replace("//", "&#47;&#47;"))  # noqa: S704 (escaped above)


def make_element(name: str, /, *children: object, **attributes: object) -> Markup:
    """Make an element. `class_` loses its underscore, others become hyphens; None leaves an attribute out."""
    attribute_texts = []
    for key, value in attributes.items():
        if value is not None:
            attribute_texts.append(_format_attribute(key, value))
    opening = "".join(attribute_texts)
    return Markup(f"<{name}{opening}>{join_markup(children)}</{name}>")  # noqa: S704 (every part is escaped)


def join_markup(children: Iterable[object]) -> Markup:
    """Put children one after another: None is left out, a list is joined in turn."""
    shown = (child for child in children if child is not None)
    parts = []
    for child in shown:
        parts.append(
            join_markup(child) if isinstance(child, list | tuple) else escape_markup(child)
        )
    return Markup("").join(parts)


def _format_attribute(key: str, value: object) -> str:
    if key != "viewBox":
        name = key.rstrip("_").replace("_", "-")
    else:
        name = key

    # two decimals of a pixel are enough, without zeros at the end
    if isinstance(value, float):
        shown = f"{value:.2f}".rstrip("0").rstrip(".")
    else:
        shown = str(value)

    return f' {name}="{escape_markup(shown)}"'


@dataclass(frozen=True)
class Axis:
    """A straight line from values `low` … `high` to pixels `start` … `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        # an axis of a single value puts it at the start
        return self.start + (value - self.low) / ((self.high - self.low) or 1.0) * (
            self.end - self.start
        )


def choose_round_step(span: float, count: int) -> float:
    """Return a round step with at most `count` steps in `span`.

    Steps are 1, 2, 2.5 or 5 times a power of ten.
    """
    if not (span > 0 and math.isfinite(span)):
        return 1.0

    power = 10.0 ** math.floor(math.log10(span / count))
    # with a tolerance, so that rounding doesn't ask for the next larger step
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power * count >= span * (1 - 1e-9))


def choose_ticks(low: float, high: float, count: int = 8) -> list[float]:
    """Return round values within `low` … `high`, about `count` of them."""
    step = choose_round_step(high - low, count)
    # with a tolerance, so that rounding doesn't lose the ends
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    # rounded, as a multiple of .1 isn't exact
    return [round(index * step, 12) for index in range(first, last + 1)]


def format_tick(value: float) -> str:
    """Write a round value, as short as possible."""
    return f"{value:g}".replace("-", MINUS_SIGN)


def make_svg(
    title: str,
    *parts: object,
    width: int = CHART_PANEL_WIDTH_PIXELS,
    height: int = CHART_PANEL_HEIGHT_PIXELS,
    class_: str = "panel",
    fixed: bool = False,
) -> Markup:
    """Make a drawing with a title for screen readers; a group if it has links.

    Args:
        fixed: Whether it keeps its own size, however wide the page is.
    """
    inside = join_markup(parts)
    role = "group" if "<a " in inside else "img"  # foreign text has no `<`
    size = {"width": width, "height": height} if fixed else {}
    frame = {
        "viewBox": f"0 0 {width} {height}",
        "class_": class_,
        "role": role,
        **size,
    }
    return make_element("svg", make_element("title", title), inside, **frame)


def make_group(title: str, *parts: object) -> Markup:
    """Make a group of shapes with a title of its own, which a pointer shows."""
    return make_element("g", make_element("title", title), *parts)


def draw_line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    class_: str,
) -> Markup:
    """Draw a straight line between two points in pixels."""
    return make_element(
        "line",
        x1=float(x1),
        y1=float(y1),
        x2=float(x2),
        y2=float(y2),
        class_=class_,
    )


def draw_rectangle(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    class_: str,
) -> Markup:
    """Draw a rectangle between two corners in pixels."""
    x = min(x1, x2)
    y = min(y1, y2)
    width = abs(x2 - x1)
    height = abs(y2 - y1)

    return make_element(
        "rect",
        x=float(x),
        y=float(y),
        width=float(width),
        height=float(height),
        class_=class_,
    )


def draw_text(
    x: float,
    y: float,
    words: object,
    class_: str = "",
    anchor: str = "start",
) -> Markup:
    """Put words at a place in pixels."""
    return make_element(
        "text",
        words,
        x=float(x),
        y=float(y),
        class_=class_ or None,
        text_anchor=anchor,
    )


def draw_disc(
    x: float,
    y: float,
    class_: str,
    radius: float = 4.0,
) -> Markup:
    """Draw a round mark: positive conversations, and held-out figures."""
    return make_element(
        "circle",
        cx=float(x),
        cy=float(y),
        r=float(radius),
        class_=class_,
    )


def draw_diamond(
    x: float,
    y: float,
    class_: str,
    radius: float = 5.0,
) -> Markup:
    """Draw a pointed mark: negative conversations."""
    corners = [(x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y)]
    return make_element("path", d=f"{_format_path(corners)}Z", class_=class_)


def _format_path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


@dataclass(frozen=True)
class ChartFrame:
    """The inside of a panel: two scales, and shapes that are given in values.

    A panel is as wide as a phone; two stand side by side on a screen, so that no text in it gets
    unreadably small.
    """

    x: Axis
    y: Axis

    @classmethod
    def over(cls, xs: tuple[float, float], ys: tuple[float, float]) -> ChartFrame:
        """Make a panel of these ranges."""
        # pixels are counted from the top, so the lowest value has the highest number
        return cls(
            Axis(*xs, LEFT_MARGIN, CHART_PANEL_WIDTH_PIXELS - RIGHT_MARGIN),
            Axis(*ys, CHART_PANEL_HEIGHT_PIXELS - BOTTOM_MARGIN, TOP_MARGIN),
        )

    def curve(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        class_: str,
    ) -> Markup:
        """Draw a line through points."""
        points = self._points(xs, ys)
        if points:
            return make_element(
                "path",
                d=_format_path(points),
                class_=f"curve {class_}",
            )

        return Markup("")

    def area(
        self,
        xs: Sequence[float],
        low: Sequence[float],
        high: Sequence[float],
        class_: str,
    ) -> Markup:
        """Draw the area between two lines."""
        points = [*self._points(xs, low), *reversed(self._points(xs, high))]
        if points:
            return make_element("path", d=f"{_format_path(points)}Z", class_=class_)
        return Markup("")

    def _points(self, xs: Sequence[float], ys: Sequence[float]) -> list[tuple[float, float]]:
        points: list[tuple[float, float]] = []
        for x, y in zip(xs, ys, strict=True):
            points.append((self.x(x), self.y(y)))
        return points

    def bar(
        self,
        x1: float,
        x2: float,
        y1: float,
        y2: float,
        class_: str,
    ) -> Markup:
        """Draw a bar with a hair's breadth to its neighbor."""
        return draw_rectangle(
            self.x(x1) + 0.5,
            self.y(y1),
            self.x(x2) - 0.5,
            self.y(y2),
            class_,
        )

    def band(self, low: float | None, high: float | None, class_: str) -> Markup:
        """Draw a band over the full height; None reaches to the edge."""
        low = self.x.low if low is None else low
        high = self.x.high if high is None else high
        # an edge outside the panel moves to its border
        start, end = (self.x(min(max(edge, self.x.low), self.x.high)) for edge in (low, high))
        return draw_rectangle(start, self.y.start, end, self.y.end, class_)

    def whisker(self, x: float, low: float | None, high: float | None) -> Markup | None:
        """Draw an upright interval; nothing where it has no ends."""
        if low is None or high is None:
            return None

        return draw_line(
            self.x(x),
            self.y(low),
            self.x(x),
            self.y(high),
            "whisker ink",
        )

    def vline(self, value: float, class_: str, label: str = "") -> Markup:
        """Draw a line over the full height, with its name above."""
        place = self.x(value)
        # near a side of the panel the name turns inward
        if place > CHART_PANEL_WIDTH_PIXELS * 0.85:
            anchor = "end"
        elif place < CHART_PANEL_WIDTH_PIXELS * 0.2:
            anchor = "start"
        else:
            anchor = "middle"

        name = None
        if label:
            name = draw_text(place, self.y.end - 8, label, "mark", anchor)

        return make_element(
            "g",
            draw_line(place, self.y.start, place, self.y.end, class_),
            name,
        )

    def hline(self, value: float, class_: str) -> Markup:
        """Draw a line over the full width."""
        return draw_line(
            self.x.start,
            self.y(value),
            self.x.end,
            self.y(value),
            class_,
        )

    def x_axis(self, name: str) -> Markup:
        """Draw tick labels under the panel, and what they measure."""
        values = choose_ticks(self.x.low, self.x.high)
        labels = []
        for value in values:
            labels.append(
                draw_text(
                    self.x(value),
                    self.y.start + 15,
                    format_tick(value),
                    "tick",
                    "middle",
                )
            )

        center = (self.x.start + self.x.end) / 2
        return make_element(
            "g",
            labels,
            draw_text(center, self.y.start + 31, name, "axis-name", "middle"),
        )

    def y_axis(self, values: Sequence[float]) -> Markup:
        """Draw grid lines with their labels on the left."""
        place = self.x.start - 6
        labels = []
        for value in values:
            labels.append(
                draw_text(
                    place,
                    self.y(value) + 4,
                    # counts that are drawn downward have no sign
                    format_tick(abs(value)),
                    "tick",
                    "end",
                )
            )

        return make_element(
            "g",
            list(zip((self.hline(value, "grid") for value in values), labels, strict=True)),
        )
