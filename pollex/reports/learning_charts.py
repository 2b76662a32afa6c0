"""Charts of the report on a rubric set.

Positive is a disc and above, negative a diamond and below.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from pollex.measures.arrays import Bools, Floats
from pollex.measures.reliability import Bin
from pollex.reports.learning_data import Scores
from pollex.reports.numbers import SHARES, count, known, number, percent
from pollex.reports.svg import Frame, diamond, disc, element, group, nice_step, svg, text
from pollex.rubrics.records import RatingRecord
from pollex.rubrics.rubric_set import RubricSet
from pollex.selection import losses

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
    marks = [mark for mark in (rubrics.theta, rubrics.window.lower, rubrics.window.upper) if known(mark)]
    values = np.concatenate([*(scores.netsat for scores in every), marks])
    wanted = int(np.clip(4 * max(map(len, every)) ** (1 / 3), 8, 32))
    step = nice_step(float(np.ptp(values)), wanted)
    first, last = int(np.floor(values.min() / step)), int(np.floor(values.max() / step)) + 1
    edges = step * np.arange(first, last + 1, dtype=float)
    counts = [np.histogram(scores.netsat[side], edges)[0] for scores in every for side in _classes(scores)]
    return Bars(edges, max(1, *(int(each.max()) for each in counts)))


def _classes(scores: Scores) -> tuple[Bools, Bools]:
    return scores.positive, ~scores.positive


def distribution(side: str, scores: Scores, rubrics: RubricSet, bars: Bars) -> Markup:
    """Draw a histogram of NetSAT: positive conversations upward, negative ones downward, θ, and the window."""
    room = 1.25 * bars.highest  # for the names in the corners
    frame = Frame.over(bars.ends, (-room, room))
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


def _histogram(frame: Frame, edges: Floats, netsat: Floats, sign: int, class_: str) -> list[Markup]:
    heights = (sign * np.histogram(netsat, edges)[0]).tolist()
    spans = zip(edges[:-1].tolist(), edges[1:].tolist(), heights, strict=True)
    return [frame.bar(left, right, 0, height, class_) for left, right, height in spans if height]


def _corner(frame: Frame, y: float, class_: str, n: int) -> Markup:
    x = frame.x.start + 8
    return element("g", dict(MARKS)[class_](x, y - 4, class_), text(x + 9, y, f"{n} {class_}", f"label {class_}"))


def precision_curves(side: str, scores: Scores, rubrics: RubricSet, bars: Bars) -> Markup:
    """Draw Prec+ and Prec− against θ, their tanh curves, and the window; both classes are there."""
    plot = losses.precision_curves(scores.netsat[None, scores.positive], scores.netsat[None, ~scores.positive])
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
    marks = [
        mark(x, y, class_, 3.0)
        for (class_, mark), which in zip(MARKS, _classes(scores), strict=True)
        for x, y in sorted(_pixels(frame, scores.netsat[which], scores.probability[which]))
    ]
    title = f"Probability of positive against NetSAT, {side.lower()}"
    return svg(title, frame.y_axis(SHARES), marks, frame.x_axis("NetSAT"))


def _pixels(frame: Frame, xs: Floats, ys: Floats) -> set[tuple[int, int]]:
    return {(round(frame.x(x)), round(frame.y(y))) for x, y in zip(xs.tolist(), ys.tolist(), strict=True)}


def reliability(bins: Sequence[Bin], n: int) -> Markup:
    """Draw the observed share against the predicted probability; on the diagonal, probabilities are right."""
    frame = Frame.over((0.0, 1.0), (0.0, 1.0))
    return svg(
        f"Observed share of positive against predicted probability, {n} conversations",
        frame.y_axis(SHARES),
        frame.curve((0.0, 1.0), (0.0, 1.0), "diagonal"),
        [bin_mark(frame, each, "conversation", "observed", 4.5) for each in bins],
        frame.x_axis("predicted probability of positive"),
    )


def rating_reliability(rating: RatingRecord) -> Markup:
    """Draw mean ratings given against those predicted, in fifths; on the diagonal they are the same."""
    values = rating.scales[rating.question]
    low, high = values[0], values[-1]
    frame = Frame.over((low, high), (low, high))
    points = [
        group(
            f"{count(n, 'conversation')}: predicted {mean:.2f}, given {given:.2f}",
            disc(frame.x(mean), frame.y(given), "ink", 4.5),
        )
        for mean, given, n in rating.reliability
    ]
    return svg(
        f"Mean {rating.question} given against predicted",
        frame.y_axis(values),
        frame.curve((low, high), (low, high), "diagonal"),
        points,
        frame.x_axis(f"predicted {rating.question}"),
    )


def bin_mark(frame: Frame, bin_: Bin, noun: str, verb: str, radius: float) -> Markup | None:
    """Draw one reliability bin with its interval; nothing if its share is undefined."""
    share = bin_.share
    if not known(share.value):
        return None
    said = f"{count(share.n, noun)}: predicted {percent(bin_.predicted)}, {verb} {percent(share.value)}"
    mark = disc(frame.x(bin_.predicted), frame.y(share.value), "ink", radius)
    return group(said, frame.whisker(bin_.predicted, share.low, share.high), mark)
