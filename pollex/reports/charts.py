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
from pollex.measures.distributions import PredictionBin, ReliabilityDiagram
from pollex.measures.intervals import Figure
from pollex.reports.learning import SideScores
from pollex.reports.numbers import (
    SHARE_AXIS_MARKS,
    format_grouped_count,
    format_number,
    format_percent,
    is_known,
)
from pollex.reports.svg import (
    Axis,
    ChartFrame,
    choose_round_step,
    draw_diamond,
    draw_disc,
    draw_line,
    draw_rectangle,
    draw_text,
    format_tick,
    make_element,
    make_group,
    make_svg,
)
from pollex.rubrics.records import RatingRecord
from pollex.rubrics.rubric_set import RubricSet
from pollex.selection import losses

SMALL_CHART_WIDTH_PIXELS = 150
CHART_ROW_HEIGHT_PIXELS = 12
MIN_SCALE_SPAN = 1e-6
"""The narrowest scale whose ends have different labels."""

UNIT_AXIS = Axis(0.0, 1.0, 8, SMALL_CHART_WIDTH_PIXELS - 8)


def make_small_axis(low: float, high: float) -> Axis:
    """Make a scale for small drawings."""
    return Axis(low, high, 8, SMALL_CHART_WIDTH_PIXELS - 8)


def make_shared_axis(figures: Iterable[Figure]) -> Axis:
    """Make one scale for all rows of a table, with 0 on it."""
    # every value and end of an interval has to fit
    ends = []
    for figure in figures:
        for end in (figure.value, figure.low, figure.high):
            if is_known(end):
                ends.append(end)

    low = min([0.0, *ends])
    high = max([0.0, *ends])
    # round ends, with 0 between or at them
    step = choose_round_step(high - low if high - low >= MIN_SCALE_SPAN else 1.0, 4)

    return make_small_axis(
        math.floor(low / step) * step,
        math.ceil(high / step) * step or step,
    )


def draw_axis(scale: Axis, values: Sequence[float] = ()) -> Markup:
    """Label a scale above a table's rows: at these values, else ends and 0."""
    # 0 may be one of the ends: each place once
    places = dict.fromkeys(values or [scale.low, 0.0, scale.high])
    labels = []
    for value in places:
        labels.append(
            draw_text(
                scale(value),
                11,
                format_tick(round(value, 6)),
                "tick",
                "middle",
            )
        )

    title = f"Axis from {format_tick(round(scale.low, 6))} to {format_tick(round(scale.high, 6))}"
    return make_svg(title, labels, width=SMALL_CHART_WIDTH_PIXELS, height=14, class_="spark")


def draw_figures(
    name: str,
    figures: Sequence[tuple[str, Figure | None]],
    scale: Axis = UNIT_AXIS,
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

    figures_told = ", ".join(
        f"{side} {format_number(figure.value)}" for side, figure in known_figures
    )
    # a row for each figure, also for one that is missing
    height = CHART_ROW_HEIGHT_PIXELS * len(figures) + 6
    middle = CHART_ROW_HEIGHT_PIXELS * len(figures) / 2 + 3
    rows = []
    for row, (side, figure) in enumerate(figures):
        if figure:
            rows.append(
                _draw_figure_at(
                    figure,
                    scale,
                    9.0 + CHART_ROW_HEIGHT_PIXELS * row,
                    side.replace(" ", "-"),
                )
            )

    return make_svg(
        f"{name}: {figures_told}",
        draw_line(scale.start, middle, scale.end, middle, "grid"),
        None
        if reference is None
        else draw_line(scale(reference), 0, scale(reference), height, "reference"),
        rows,
        width=SMALL_CHART_WIDTH_PIXELS,
        height=height,
        class_="spark",
    )


def draw_figure(name: str, figure: Figure, scale: Axis) -> Markup:
    """Draw one figure with its interval beside 0."""
    return draw_figures(name, [("held out", figure)], scale, 0.0)


def _draw_figure_at(
    figure: Figure,
    scale: Axis,
    y: float,
    class_: str,
) -> Markup | None:
    if not is_known(figure.value):
        return None

    mark = draw_disc(scale(figure.value), y, class_)
    # a figure without an interval is a mark alone
    if not (is_known(figure.low) and is_known(figure.high)):
        return mark

    return make_element(
        "g",
        draw_line(scale(figure.low), y, scale(figure.high), y, f"whisker {class_}"),
        mark,
    )


def draw_trend(name: str, shares: Mapping[str, Figure]) -> Markup:
    """Draw shares in their order as a small line, with the band of their intervals; a single one as a dot."""
    # a period without a share has no place on the line
    points = []
    for at, share in enumerate(shares.values()):
        if is_known(share.value):
            points.append((at, share))

    # the highest end of all intervals is the top
    high = max([share.high or share.value or 0.0 for _, share in points], default=0.0) or 1.0
    across = make_small_axis(0, max(len(points) - 1, 1))
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
    shares_told = ", ".join(
        f"{period} {format_number(share.value)}" for period, share in shares.items()
    )
    lines = []
    for a, b in pairwise(rows):
        lines.append(draw_line(a[0], a[1], b[0], b[1], "trend"))

    # a mark on the last one
    dots = []
    for x, y, _, _ in rows[-1:]:
        dots.append(draw_disc(x, y, "held-out", 2.0))

    shade = make_element(
        "polygon",
        points=" ".join(f"{x:.1f},{y:.1f}" for x, y in band),
        class_="band",
    )
    return make_svg(
        f"{name}: {shares_told or 'no scored run'}",
        shade if len(rows) > 1 else None,
        lines,
        dots,
        width=SMALL_CHART_WIDTH_PIXELS,
        height=20,
        class_="spark",
    )


def draw_share_bar(title: str, share: float) -> Markup:
    """Draw a share of 1 as a bar."""
    bars = (
        draw_rectangle(0, 2, 100, 8, "bar-rest"),
        draw_rectangle(0, 2, 100 * share, 8, "bar-share"),
    )
    return make_svg(title, *bars, width=100, height=10, class_="share")


def draw_two_means(
    positive: float | None,
    negative: float | None,
    scale: Axis,
) -> Markup:
    """Draw the mean answers of both classes on one scale."""
    # the positive mark is drawn last, so that it lies on top
    marks = [(negative, draw_diamond, "negative"), (positive, draw_disc, "positive")]
    drawn = []
    for value, mark, class_ in marks:
        if is_known(value):
            drawn.append(mark(scale(value), 10, class_))

    title = f"Mean agreement: positive {format_number(positive, 1)}, negative {format_number(negative, 1)} of 10"
    return make_svg(
        title,
        draw_line(scale.start, 10, scale.end, 10, "grid"),
        drawn,
        width=SMALL_CHART_WIDTH_PIXELS,
        height=20,
        class_="spark",
    )


DRAW_MARK_BY_CLASS = (("positive", draw_disc), ("negative", draw_diamond))


@dataclass(frozen=True)
class HistogramBars:
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


def choose_histogram_bars(rubrics: RubricSet, sides: Iterable[SideScores]) -> HistogramBars:
    """Choose bars that fit the scores of all sides."""
    every = list(sides)
    # θ and the window have to fit as well
    marks = []
    for mark in (rubrics.theta, rubrics.window.lower, rubrics.window.upper):
        if is_known(mark):
            marks.append(mark)

    values = np.concatenate([*(scores.netsat for scores in every), marks])
    # more bars for more conversations, by their cube root: 8 to 32
    bars = int(np.clip(4 * max(map(len, every)) ** (1 / 3), 8, 32))
    step = choose_round_step(float(np.ptp(values)), bars)
    first = int(np.floor(values.min() / step))
    last = int(np.floor(values.max() / step)) + 1
    edges = step * np.arange(first, last + 1, dtype=float)
    # one height for all sides and classes, so that they can be compared
    counts = []
    for scores in every:
        for side in _find_members_of_each_class(scores):
            counts.append(np.histogram(scores.netsat[side], edges)[0])

    return HistogramBars(edges, max(1, *(int(count.max()) for count in counts)))


def _find_members_of_each_class(scores: SideScores) -> tuple[Bools, Bools]:
    return scores.positive, ~scores.positive


def draw_netsat_histogram(
    side: str,
    scores: SideScores,
    rubrics: RubricSet,
    bars: HistogramBars,
) -> Markup:
    """Draw a histogram of NetSAT: positive conversations upward, negative ones downward, θ, and the window."""
    room = 1.25 * bars.highest  # for the names in the corners
    frame = ChartFrame.over(bars.ends, (-room, room))
    # the lower half counts, too: its labels have no sign
    step = choose_round_step(bars.highest, 3)
    levels = np.arange(-np.floor(bars.highest / step), np.floor(bars.highest / step) + 1) * step
    counts = [int(which.sum()) for which in _find_members_of_each_class(scores)]

    return make_svg(
        f"{side}: histogram of NetSAT, {counts[0]} positive and {counts[1]} negative conversations, "
        f"θ at {format_number(rubrics.theta, 1)}",
        frame.y_axis(levels.tolist()),
        frame.band(rubrics.window.lower, rubrics.window.upper, "window"),
        _draw_bars_of_class(frame, bars.edges, scores.netsat[scores.positive], 1, "positive"),
        _draw_bars_of_class(frame, bars.edges, scores.netsat[~scores.positive], -1, "negative"),
        frame.hline(0, "axis"),
        frame.vline(rubrics.theta, "theta", f"θ {format_number(rubrics.theta, 1)}"),
        _draw_corner_label(frame, frame.y.end + 12, "positive", counts[0]),
        _draw_corner_label(frame, frame.y.start - 6, "negative", counts[1]),
        frame.x_axis("NetSAT"),
    )


def _draw_bars_of_class(
    frame: ChartFrame,
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


def _draw_corner_label(
    frame: ChartFrame,
    y: float,
    class_: str,
    n: int,
) -> Markup:
    x = frame.x.start + 8
    return make_element(
        "g",
        dict(DRAW_MARK_BY_CLASS)[class_](x, y - 4, class_),
        draw_text(x + 9, y, f"{n} {class_}", f"label {class_}"),
    )


def draw_precision_curves(
    side: str,
    scores: SideScores,
    rubrics: RubricSet,
    bars: HistogramBars,
) -> Markup:
    """Draw Prec+ and Prec− against θ, their tanh curves, and the window; both classes are there."""
    # the losses take many sets at once `[set, conversation]`; here there is one
    plot = losses.compute_precision_curves(
        scores.netsat[None, scores.positive],
        scores.netsat[None, ~scores.positive],
    )
    thresholds = plot.thresholds[0].tolist()
    frame = ChartFrame.over(bars.ends, (0.0, 1.0))

    return make_svg(
        f"{side}: Prec+ and Prec− against the threshold on NetSAT",
        frame.y_axis(SHARE_AXIS_MARKS),
        frame.band(rubrics.window.lower, rubrics.window.upper, "window"),
        frame.hline(rubrics.window.precision, "reference"),
        frame.curve(thresholds, plot.target_plus[0].tolist(), "positive target"),
        frame.curve(thresholds, plot.target_minus[0].tolist(), "negative target"),
        frame.curve(thresholds, plot.plus[0].tolist(), "positive"),
        frame.curve(thresholds, plot.minus[0].tolist(), "negative"),
        frame.vline(rubrics.theta, "theta", f"θ {format_number(rubrics.theta, 1)}"),
        frame.x_axis("threshold on NetSAT"),
    )


def draw_probability_points(side: str, scores: SideScores, bars: HistogramBars) -> Markup:
    """Draw each conversation's probability against its NetSAT, one mark a pixel."""
    frame = ChartFrame.over(bars.ends, (0.0, 1.0))
    marks = []
    for (class_, mark), which in zip(
        DRAW_MARK_BY_CLASS, _find_members_of_each_class(scores), strict=True
    ):
        for x, y in sorted(
            _find_occupied_pixels(frame, scores.netsat[which], scores.probability[which])
        ):
            marks.append(mark(x, y, class_, 3.0))

    title = f"Probability of positive against NetSAT, {side.lower()}"
    return make_svg(title, frame.y_axis(SHARE_AXIS_MARKS), marks, frame.x_axis("NetSAT"))


def _find_occupied_pixels(frame: ChartFrame, xs: Floats, ys: Floats) -> set[tuple[int, int]]:
    # marks on one pixel are drawn once
    pixels: set[tuple[int, int]] = set()
    for x, y in zip(xs.tolist(), ys.tolist(), strict=True):
        pixels.add((round(frame.x(x)), round(frame.y(y))))
    return pixels


def draw_reliability_bins(bins: Sequence[PredictionBin], n: int) -> Markup:
    """Draw the observed share against the predicted probability; on the diagonal, probabilities are right."""
    frame = ChartFrame.over((0.0, 1.0), (0.0, 1.0))
    return make_svg(
        f"Observed share of positive against predicted probability, {n} conversations",
        frame.y_axis(SHARE_AXIS_MARKS),
        frame.curve((0.0, 1.0), (0.0, 1.0), "diagonal"),
        [draw_reliability_bin(frame, bin_, "conversation", "observed", 4.5) for bin_ in bins],
        frame.x_axis("predicted probability of positive"),
    )


def draw_rating_reliability(rating: RatingRecord) -> Markup:
    """Draw mean ratings given against those predicted, in fifths; on the diagonal they are the same."""
    values = rating.scales[rating.question]
    low = values[0]
    high = values[-1]
    frame = ChartFrame.over((low, high), (low, high))
    points = []
    for mean, rated, n in rating.reliability:
        points.append(
            make_group(
                f"{format_grouped_count(n, 'conversation')}: predicted {mean:.2f}, given {rated:.2f}",
                draw_disc(frame.x(mean), frame.y(rated), "ink", 4.5),
            )
        )

    return make_svg(
        f"Mean {rating.question} given against predicted",
        frame.y_axis(values),
        frame.curve((low, high), (low, high), "diagonal"),
        points,
        frame.x_axis(f"predicted {rating.question}"),
    )


def draw_reliability_bin(
    frame: ChartFrame,
    bin_: PredictionBin,
    noun: str,
    verb: str,
    radius: float,
) -> Markup | None:
    """Draw one reliability bin with its interval; nothing if its share is undefined."""
    share = bin_.share
    if not is_known(share.value):
        return None

    title = (
        f"{format_grouped_count(share.n, noun)}: predicted {format_percent(bin_.predicted)}, "
        f"{verb} {format_percent(share.value)}"
    )
    mark = draw_disc(
        frame.x(bin_.predicted),
        frame.y(share.value),
        "ink",
        radius,
    )
    return make_group(
        title,
        frame.whisker(bin_.predicted, share.low, share.high),
        mark,
    )


MIN_DRAWN_DENSITY_SHARE = 0.2
"""Below this share of the mean density, a smoothed curve rests on too few predictions to be drawn."""


def draw_reliability_curve(
    diagram: ReliabilityDiagram,
    labels: int,
    title: str = "",
    noun: str = "judgment",
) -> Markup:
    """Draw observed against predicted frequency: a smoothed curve with band, and bins."""
    frame = ChartFrame.over((0.0, 1.0), (0.0, 1.0))
    # from the first to the last place with enough predictions around it
    thick = np.flatnonzero(diagram.density >= MIN_DRAWN_DENSITY_SHARE)
    if len(thick):
        within = slice(int(thick[0]), int(thick[-1]) + 1)
    else:
        within = slice(0)

    mesh, low, curve, high = (
        array[within].tolist() for array in (diagram.mesh, diagram.low, diagram.curve, diagram.high)
    )
    return make_svg(
        title or f"Answer {diagram.value:g}: given against predicted, {labels} labels",
        frame.y_axis(SHARE_AXIS_MARKS),
        frame.area(mesh, low, high, "band"),
        frame.curve((0.0, 1.0), (0.0, 1.0), "diagonal"),
        frame.curve(mesh, curve, "positive"),
        [draw_reliability_bin(frame, bin_, noun, "given", 3.0) for bin_ in diagram.bins],
        frame.x_axis("predicted probability"),
    )
