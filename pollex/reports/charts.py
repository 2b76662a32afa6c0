"""Drawings of all pages: small ones inside tables and lists, then the charts of a set, a calibrator, and ratings.

Positive is a disc and above, negative a diamond and below.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from markupsafe import Markup

from pollex.measures.arrays import Bools, Floats
from pollex.measures.distributions import Bin, Reliability
from pollex.measures.intervals import Figure
from pollex.reports.learning import Scores
from pollex.reports.numbers import SHARES, count, known, number, percent
from pollex.reports.svg import (
    Axis,
    Frame,
    diamond,
    disc,
    element,
    group,
    line,
    nice_step,
    rect,
    svg,
    text,
    tick_label,
)
from pollex.rubrics.records import RatingRecord
from pollex.rubrics.rubric_set import RubricSet
from pollex.selection import losses

WIDTH = 150
ROW = 12
NARROWEST_SCALE = 1e-6
"""The narrowest scale whose ends have different labels."""

UNIT = Axis(0.0, 1.0, 8, WIDTH - 8)


def scale_over(low: float, high: float) -> Axis:
    """Make a scale for small drawings."""
    return Axis(low, high, 8, WIDTH - 8)


def scale_of(figures: Iterable[Figure]) -> Axis:
    """Make one scale for all rows of a table, with 0 on it."""
    # every value and end of an interval has to fit
    ends = []
    for figure in figures:
        for end in (figure.value, figure.low, figure.high):
            if known(end):
                ends.append(end)

    low = min([0.0, *ends])
    high = max([0.0, *ends])
    # round ends, with 0 between or at them
    step = nice_step(high - low if high - low >= NARROWEST_SCALE else 1.0, 4)

    return scale_over(
        math.floor(low / step) * step,
        math.ceil(high / step) * step or step,
    )


def axis(scale: Axis, values: Sequence[float] = ()) -> Markup:
    """Label a scale above a table's rows: at these values, else ends and 0."""
    # 0 may be one of the ends: each place once
    places = dict.fromkeys(values or [scale.low, 0.0, scale.high])
    labels = []
    for value in places:
        labels.append(
            text(
                scale(value),
                11,
                tick_label(round(value, 6)),
                "tick",
                "middle",
            )
        )

    title = f"Axis from {tick_label(round(scale.low, 6))} to {tick_label(round(scale.high, 6))}"
    return svg(title, labels, width=WIDTH, height=14, class_="spark")


def whiskers(
    name: str,
    figures: Sequence[tuple[str, Figure | None]],
    scale: Axis = UNIT,
    reference: float | None = None,
) -> Markup:
    """Draw figures with their intervals, one below another.

    Args:
        figures: By side (`training`, `held out`), from the top.
        reference: A value to compare with, for example chance: a dotted line.
    """
    known_figures = []
    for side, figure in figures:
        if figure is not None:
            known_figures.append((side, figure))

    figures_told = ", ".join(f"{side} {number(figure.value)}" for side, figure in known_figures)
    # a row for each figure, also for one that is missing
    height = ROW * len(figures) + 6
    middle = ROW * len(figures) / 2 + 3
    rows = []
    for row, (side, figure) in enumerate(figures):
        if figure:
            rows.append(
                _whisker(
                    figure,
                    scale,
                    9.0 + ROW * row,
                    side.replace(" ", "-"),
                )
            )

    return svg(
        f"{name}: {figures_told}",
        line(scale.start, middle, scale.end, middle, "grid"),
        None
        if reference is None
        else line(scale(reference), 0, scale(reference), height, "reference"),
        rows,
        width=WIDTH,
        height=height,
        class_="spark",
    )


def whisker(name: str, figure: Figure, scale: Axis) -> Markup:
    """Draw one figure with its interval beside 0."""
    return whiskers(name, [("held out", figure)], scale, 0.0)


def _whisker(
    figure: Figure,
    scale: Axis,
    y: float,
    class_: str,
) -> Markup | None:
    if not known(figure.value):
        return None

    mark = disc(scale(figure.value), y, class_)
    # a figure without an interval is a mark alone
    if not (known(figure.low) and known(figure.high)):
        return mark

    return element(
        "g",
        line(scale(figure.low), y, scale(figure.high), y, f"whisker {class_}"),
        mark,
    )


def trend(name: str, shares: Mapping[str, Figure]) -> Markup:
    """Draw shares in their order as a small line, with the band of their intervals; a single one as a dot."""
    # a period without a share has no place on the line
    points = []
    for at, share in enumerate(shares.values()):
        if known(share.value):
            points.append((at, share))

    # the highest end of all intervals is the top
    high = max([share.high or share.value or 0.0 for _, share in points], default=0.0) or 1.0
    across = scale_over(0, max(len(points) - 1, 1))
    placed = []
    for at, (_, share) in enumerate(points):
        placed.append((across(at), share))

    # value, low and high in pixels from the top
    rows = []
    for x, share in placed:
        rows.append(
            (x, *(18 - 16 * (end or 0.0) / high for end in (share.value, share.low, share.high)))
        )

    # along the high ends and back along the low ones
    band = [(x, top) for x, _, _, top in rows] + [(x, low) for x, _, low, _ in reversed(rows)]
    shares_told = ", ".join(f"{period} {number(share.value)}" for period, share in shares.items())
    lines = []
    for a, b in pairwise(rows):
        lines.append(line(a[0], a[1], b[0], b[1], "trend"))

    # a mark on the last one
    dots = []
    for x, y, _, _ in rows[-1:]:
        dots.append(disc(x, y, "held-out", 2.0))

    shade = element(
        "polygon",
        points=" ".join(f"{x:.1f},{y:.1f}" for x, y in band),
        class_="band",
    )
    return svg(
        f"{name}: {shares_told or 'no scored run'}",
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


def two_means(
    positive: float | None,
    negative: float | None,
    scale: Axis,
) -> Markup:
    """Draw the mean answers of both classes on one scale."""
    # the positive mark is drawn last, so that it lies on top
    marks = [(negative, diamond, "negative"), (positive, disc, "positive")]
    drawn = []
    for value, mark, class_ in marks:
        if known(value):
            drawn.append(mark(scale(value), 10, class_))

    title = f"Mean agreement: positive {number(positive, 1)}, negative {number(negative, 1)} of 10"
    return svg(
        title,
        line(scale.start, 10, scale.end, 10, "grid"),
        drawn,
        width=WIDTH,
        height=20,
        class_="spark",
    )


MARKS = (("positive", disc), ("negative", diamond))


@dataclass(frozen=True)
class Bars:
    """Bars of all histograms that are compared.

    Attributes:
        edges: Round values, wide enough for all scores, θ, and the window `[bar + 1]`.
        highest: Conversations in the highest bar of all histograms.
    """

    edges: Floats
    highest: int

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last edge."""
        return float(self.edges[0]), float(self.edges[-1])


def bars_over(rubrics: RubricSet, sides: Iterable[Scores]) -> Bars:
    """Choose bars that fit the scores of all sides."""
    every = list(sides)
    # θ and the window have to fit as well
    marks = []
    for mark in (rubrics.theta, rubrics.window.lower, rubrics.window.upper):
        if known(mark):
            marks.append(mark)

    values = np.concatenate([*(scores.netsat for scores in every), marks])
    # more bars for more conversations, by their cube root: 8 to 32
    bars = int(np.clip(4 * max(map(len, every)) ** (1 / 3), 8, 32))
    step = nice_step(float(np.ptp(values)), bars)
    first = int(np.floor(values.min() / step))
    last = int(np.floor(values.max() / step)) + 1
    edges = step * np.arange(first, last + 1, dtype=float)
    # one height for all sides and classes, so that they can be compared
    counts = []
    for scores in every:
        for side in _classes(scores):
            counts.append(np.histogram(scores.netsat[side], edges)[0])

    return Bars(edges, max(1, *(int(count.max()) for count in counts)))


def _classes(scores: Scores) -> tuple[Bools, Bools]:
    return scores.positive, ~scores.positive


def distribution(
    side: str,
    scores: Scores,
    rubrics: RubricSet,
    bars: Bars,
) -> Markup:
    """Draw a histogram of NetSAT: positive conversations upward, negative ones downward, θ, and the window."""
    room = 1.25 * bars.highest  # for the names in the corners
    frame = Frame.over(bars.ends, (-room, room))
    # the lower half counts, too: its labels have no sign
    step = nice_step(bars.highest, 3)
    levels = np.arange(-np.floor(bars.highest / step), np.floor(bars.highest / step) + 1) * step
    counts = [int(which.sum()) for which in _classes(scores)]

    return svg(
        f"{side}: histogram of NetSAT, {counts[0]} positive and {counts[1]} negative conversations, "
        f"θ at {number(rubrics.theta, 1)}",
        frame.y_axis(levels.tolist()),
        frame.band(rubrics.window.lower, rubrics.window.upper, "window"),
        _histogram(frame, bars.edges, scores.netsat[scores.positive], 1, "positive"),
        _histogram(frame, bars.edges, scores.netsat[~scores.positive], -1, "negative"),
        frame.hline(0, "axis"),
        frame.vline(rubrics.theta, "theta", f"θ {number(rubrics.theta, 1)}"),
        _corner(frame, frame.y.end + 12, "positive", counts[0]),
        _corner(frame, frame.y.start - 6, "negative", counts[1]),
        frame.x_axis("NetSAT"),
    )


def _histogram(
    frame: Frame,
    edges: Floats,
    netsat: Floats,
    sign: int,
    class_: str,
) -> list[Markup]:
    # bars of the negative class point downward
    heights = (sign * np.histogram(netsat, edges)[0]).tolist()
    spans = zip(
        edges[:-1].tolist(),
        edges[1:].tolist(),
        heights,
        strict=True,
    )
    return [frame.bar(left, right, 0, height, class_) for left, right, height in spans if height]


def _corner(
    frame: Frame,
    y: float,
    class_: str,
    n: int,
) -> Markup:
    x = frame.x.start + 8
    return element(
        "g",
        dict(MARKS)[class_](x, y - 4, class_),
        text(x + 9, y, f"{n} {class_}", f"label {class_}"),
    )


def precision_curves(
    side: str,
    scores: Scores,
    rubrics: RubricSet,
    bars: Bars,
) -> Markup:
    """Draw Prec+ and Prec− against θ, their tanh curves, and the window; both classes are there."""
    # the losses take many sets at once `[set, conversation]`; here there is one
    plot = losses.compute_precision_curves(
        scores.netsat[None, scores.positive],
        scores.netsat[None, ~scores.positive],
    )
    thresholds = plot.thresholds[0].tolist()
    frame = Frame.over(bars.ends, (0.0, 1.0))

    return svg(
        f"{side}: Prec+ and Prec− against the threshold on NetSAT",
        frame.y_axis(SHARES),
        frame.band(rubrics.window.lower, rubrics.window.upper, "window"),
        frame.hline(rubrics.window.precision, "reference"),
        frame.curve(thresholds, plot.target_plus[0].tolist(), "positive target"),
        frame.curve(thresholds, plot.target_minus[0].tolist(), "negative target"),
        frame.curve(thresholds, plot.plus[0].tolist(), "positive"),
        frame.curve(thresholds, plot.minus[0].tolist(), "negative"),
        frame.vline(rubrics.theta, "theta", f"θ {number(rubrics.theta, 1)}"),
        frame.x_axis("threshold on NetSAT"),
    )


def probability_points(side: str, scores: Scores, bars: Bars) -> Markup:
    """Draw each conversation's probability against its NetSAT, one mark a pixel."""
    frame = Frame.over(bars.ends, (0.0, 1.0))
    marks = []
    for (class_, mark), which in zip(MARKS, _classes(scores), strict=True):
        for x, y in sorted(_pixels(frame, scores.netsat[which], scores.probability[which])):
            marks.append(mark(x, y, class_, 3.0))

    title = f"Probability of positive against NetSAT, {side.lower()}"
    return svg(title, frame.y_axis(SHARES), marks, frame.x_axis("NetSAT"))


def _pixels(frame: Frame, xs: Floats, ys: Floats) -> set[tuple[int, int]]:
    # marks on one pixel are drawn once
    pixels: set[tuple[int, int]] = set()
    for x, y in zip(xs.tolist(), ys.tolist(), strict=True):
        pixels.add((round(frame.x(x)), round(frame.y(y))))
    return pixels


def reliability(bins: Sequence[Bin], n: int) -> Markup:
    """Draw the observed share against the predicted probability; on the diagonal, probabilities are right."""
    frame = Frame.over((0.0, 1.0), (0.0, 1.0))
    return svg(
        f"Observed share of positive against predicted probability, {n} conversations",
        frame.y_axis(SHARES),
        frame.curve((0.0, 1.0), (0.0, 1.0), "diagonal"),
        [bin_mark(frame, bin_, "conversation", "observed", 4.5) for bin_ in bins],
        frame.x_axis("predicted probability of positive"),
    )


def rating_reliability(rating: RatingRecord) -> Markup:
    """Draw mean ratings given against those predicted, in fifths; on the diagonal they are the same."""
    values = rating.scales[rating.question]
    low = values[0]
    high = values[-1]
    frame = Frame.over((low, high), (low, high))
    points = []
    for mean, rated, n in rating.reliability:
        points.append(
            group(
                f"{count(n, 'conversation')}: predicted {mean:.2f}, given {rated:.2f}",
                disc(frame.x(mean), frame.y(rated), "ink", 4.5),
            )
        )

    return svg(
        f"Mean {rating.question} given against predicted",
        frame.y_axis(values),
        frame.curve((low, high), (low, high), "diagonal"),
        points,
        frame.x_axis(f"predicted {rating.question}"),
    )


def bin_mark(
    frame: Frame,
    bin_: Bin,
    noun: str,
    verb: str,
    radius: float,
) -> Markup | None:
    """Draw one reliability bin with its interval; nothing if its share is undefined."""
    share = bin_.share
    if not known(share.value):
        return None

    title = f"{count(share.n, noun)}: predicted {percent(bin_.predicted)}, {verb} {percent(share.value)}"
    mark = disc(
        frame.x(bin_.predicted),
        frame.y(share.value),
        "ink",
        radius,
    )
    return group(
        title,
        frame.whisker(bin_.predicted, share.low, share.high),
        mark,
    )


THIN_DENSITY_SHARE = 0.2
"""Below this share of the mean density, a smoothed curve rests on too few predictions to be drawn."""


def reliability_chart(
    diagram: Reliability,
    labels: int,
    title: str = "",
    noun: str = "judgment",
) -> Markup:
    """Draw observed against predicted frequency: a smoothed curve with band, and bins."""
    frame = Frame.over((0.0, 1.0), (0.0, 1.0))
    # from the first to the last place with enough predictions around it
    thick = np.flatnonzero(diagram.density >= THIN_DENSITY_SHARE)
    if len(thick):
        within = slice(int(thick[0]), int(thick[-1]) + 1)
    else:
        within = slice(0)

    mesh, low, curve, high = (
        array[within].tolist() for array in (diagram.mesh, diagram.low, diagram.curve, diagram.high)
    )
    return svg(
        title or f"Answer {diagram.value:g}: given against predicted, {labels} labels",
        frame.y_axis(SHARES),
        frame.area(mesh, low, high, "band"),
        frame.curve((0.0, 1.0), (0.0, 1.0), "diagonal"),
        frame.curve(mesh, curve, "positive"),
        [bin_mark(frame, bin_, noun, "given", 3.0) for bin_ in diagram.bins],
        frame.x_axis("predicted probability"),
    )
