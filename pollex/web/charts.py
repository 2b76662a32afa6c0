"""The report's charts. Positive is a disc and above, negative a diamond and below: colour is never the only sign."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pollex.rubrics.records import Figure
from pollex.rubrics.rubric_set import RubricSet
from pollex.selection.losses import Floats, precision_plot
from pollex.selection.platt import Calibration
from pollex.web.markup import Markup, join, tag
from pollex.web.material import MeanAnswer, Scores
from pollex.web.plots import Frame, Scale, diamond, disc, line, nice_step, rect, svg, text, tick_label
from pollex.web.reliability import Bin
from pollex.web.words import count, known, number, percent

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
SPARK = 150, 30
"""Width and height of the small drawings inside tables."""


def spark_axis(chance: str = "") -> Markup:
    """The scale above the whiskers of a table: 0, ½ and 1."""
    scale = _spark_scale()
    labels = [text(scale(v), 11, tick_label(v), "tick", "middle") for v in (0.0, 0.5, 1.0)]
    return svg(f"Scale from 0 to 1{chance}", *labels, width=SPARK[0], height=14, class_="spark")


def whiskers(name: str, training: Figure | None, held_out: Figure | None, reference: float | None = None) -> Markup:
    """Two figures between 0 and 1 with their intervals: held out below as a disc, training above as a ring.

    Args:
        reference: A value to compare with, chance for example; a dotted line.
    """
    scale = _spark_scale()
    middle = None if reference is None else line(scale(reference), 0, scale(reference), SPARK[1], "reference")
    rows = [(training, 9.0, "training"), (held_out, 21.0, "held-out")]
    drawn = [_whisker(figure, scale, y, class_) for figure, y, class_ in rows if figure]
    return svg(
        f"{name}: {_spoken(training, held_out)}",
        line(scale(0), 15, scale(1), 15, "grid"),
        middle,
        drawn,
        width=SPARK[0],
        height=SPARK[1],
        class_="spark",
    )


def _spark_scale() -> Scale:
    return Scale(0.0, 1.0, 8, SPARK[0] - 8)


def _spoken(training: Figure | None, held_out: Figure | None) -> str:
    sides = [("training", training), ("held out", held_out)]
    return ", ".join(f"{side} {number(figure.value)}" for side, figure in sides if figure)


def _whisker(figure: Figure, scale: Scale, y: float, class_: str) -> Markup:
    if not known(figure.value):
        return Markup()
    mark = disc(scale(figure.value), y, class_)
    if not (known(figure.low) and known(figure.high)):
        return mark
    return tag("g", line(scale(figure.low), y, scale(figure.high), y, f"whisker {class_}"), mark)


def share_bar(title: str, share: float) -> Markup:
    """A share of 1 as a bar."""
    return svg(
        title,
        rect(0, 2, 100, 8, "bar-rest"),
        rect(0, 2, 100 * share, 8, "bar-share"),
        width=100,
        height=10,
        class_="share",
    )


def mean_answers(means: MeanAnswer, piece: tuple[float, float]) -> Markup:
    """Mean agreement of both classes on a piece of the scale from 0 to 10."""
    scale = Scale(*piece, 8, SPARK[0] - 8)
    marks = [(means.negative, diamond, "negative"), (means.positive, disc, "positive")]
    drawn = [mark(scale(value), 10, class_) for value, mark, class_ in marks if known(value)]
    spoken = f"Mean agreement: positive {number(means.positive, 1)}, negative {number(means.negative, 1)} of 10"
    return svg(spoken, line(scale.start, 10, scale.end, 10, "grid"), drawn, width=SPARK[0], height=20, class_="spark")


def score_edges(rubrics: RubricSet, sides: Iterable[Scores]) -> Floats:
    """Edges of histogram bars at round values, wide enough for all scores, θ and the window: `[bar + 1]`."""
    netsat = [side.netsat for side in sides]
    marks = [rubrics.theta, rubrics.window.lower, rubrics.window.upper]
    values = np.concatenate([*netsat, [mark for mark in marks if known(mark)]])
    bars = int(np.clip(4 * max(map(len, netsat)) ** (1 / 3), 8, 32))
    step = nice_step(float(np.ptp(values)), bars)
    first, last = int(np.floor(values.min() / step)), int(np.floor(values.max() / step)) + 1
    return step * np.arange(first, last + 1, dtype=float)


def distribution(title: str, scores: Scores, rubrics: RubricSet, edges: Floats, most: int) -> Markup:
    """Histogram of NetSAT: positive conversations upwards, negative ones downwards, θ and the window.

    Args:
        edges: Of the bars `[bar + 1]`, the same for all panels that are compared.
        most: Conversations that a bar can show, the same for all panels.
    """
    room = 1.25 * most  # for the names in the corners
    frame = Frame.over(ends(edges), (-room, room))
    up, down = (np.histogram(scores.netsat[side], edges)[0] for side in (scores.positive, ~scores.positive))
    step = nice_step(most, 3)
    levels = np.arange(-np.floor(most / step), np.floor(most / step) + 1) * step
    return svg(
        title,
        frame.y_axis(levels.tolist()),
        _window(frame, rubrics),
        _bars(frame, edges, up, 1, "positive"),
        _bars(frame, edges, down, -1, "negative"),
        frame.level(0, "axis"),
        frame.upright(rubrics.theta, "theta", f"θ {number(rubrics.theta, 1)}"),
        _corner(frame, frame.y.end + 12, disc, "positive", int(scores.positive.sum())),
        _corner(frame, frame.y.start - 6, diamond, "negative", int((~scores.positive).sum())),
        frame.x_axis("NetSAT"),
    )


def _bars(frame: Frame, edges: Floats, counts: Floats, sign: int, class_: str) -> list[Markup]:
    spans = zip(edges[:-1].tolist(), edges[1:].tolist(), (sign * counts).tolist(), strict=True)
    return [frame.bar(left, right, 0, height, class_) for left, right, height in spans if height]


def _corner(frame: Frame, y: float, mark: object, class_: str, n: int) -> Markup:
    x = frame.x.start + 8
    shape = disc(x, y - 4, class_) if mark is disc else diamond(x, y - 4, class_)
    return tag("g", shape, text(x + 9, y, f"{n} {class_}", f"label {class_}"))


def _window(frame: Frame, rubrics: RubricSet) -> Markup:
    return frame.band(rubrics.window.lower, rubrics.window.upper, "window")


def ends(edges: Floats) -> tuple[float, float]:
    """The first and the last."""
    return float(edges[0]), float(edges[-1])


def most_in_a_bar(sides: Sequence[Scores], edges: Floats) -> int:
    """The highest bar of all panels."""
    counts = [
        np.histogram(side.netsat[which], edges)[0].max(initial=1)
        for side in sides
        for which in (side.positive, ~side.positive)
    ]
    return int(max(counts, default=1))


def precision_curves(title: str, scores: Scores, rubrics: RubricSet, xs: tuple[float, float]) -> Markup:
    """Prec+ and Prec− against θ, the tanh curves that selection holds them against, the window.

    Raises:
        BadLabels: All labels are alike.
    """
    plot = precision_plot(scores.netsat, scores.positive)
    frame = Frame.over(xs, (0.0, 1.0))
    return svg(
        title,
        frame.y_axis(SHARES),
        _window(frame, rubrics),
        frame.level(rubrics.window.precision, "reference"),
        frame.curve(plot.thresholds, plot.target_plus, "positive target"),
        frame.curve(plot.thresholds, plot.target_minus, "negative target"),
        frame.curve(plot.thresholds, plot.plus, "positive"),
        frame.curve(plot.thresholds, plot.minus, "negative"),
        frame.upright(rubrics.theta, "theta", f"θ {number(rubrics.theta, 1)}"),
        frame.x_axis("threshold on NetSAT"),
    )


def probability_curve(title: str, scores: Scores, calibration: Calibration, xs: tuple[float, float]) -> Markup:
    """P(positive) against NetSAT, and each conversation at its label: positive at 1, negative at 0."""
    frame = Frame.over(xs, (0.0, 1.0))
    grid = np.linspace(*xs, 73)
    strokes = [
        line(x, frame.y(label), x, frame.y(label) + (9 if label else -9), f"stroke {class_}")
        for side, label, class_ in ((scores.positive, 1.0, "positive"), (~scores.positive, 0.0, "negative"))
        for x in sorted({round(2 * frame.x(score)) / 2 for score in scores.netsat[side].tolist()})  # one a half pixel
    ]
    return svg(
        title,
        frame.y_axis(SHARES),
        strokes,
        frame.curve(grid.tolist(), calibration.probability(grid).tolist(), "ink"),
        frame.x_axis("NetSAT"),
    )


def probability_points(title: str, scores: Scores, xs: tuple[float, float]) -> Markup:
    """Each conversation's probability against its NetSAT; those without one are left out."""
    frame = Frame.over(xs, (0.0, 1.0))
    has = ~np.isnan(scores.probability)
    marks = [
        mark(x, y, class_, 3.0)
        for side, mark, class_ in ((scores.positive, disc, "positive"), (~scores.positive, diamond, "negative"))
        for x, y in sorted(
            {  # one a pixel
                (round(frame.x(score)), round(frame.y(p)))
                for score, p in zip(
                    scores.netsat[side & has].tolist(), scores.probability[side & has].tolist(), strict=True
                )
            }
        )
    ]
    return svg(title, frame.y_axis(SHARES), marks, frame.x_axis("NetSAT"))


def reliability(title: str, bins: Sequence[Bin]) -> Markup:
    """Observed share against predicted probability; on the diagonal the probabilities are right."""
    frame = Frame.over((0.0, 1.0), (0.0, 1.0))
    marks = [
        tag(
            "g",
            tag(
                "title",
                f"{count(bin_.n, 'conversation')}: predicted {percent(bin_.predicted)}, "
                f"observed {percent(bin_.observed)}",
            ),
            line(
                frame.x(bin_.predicted), frame.y(bin_.low), frame.x(bin_.predicted), frame.y(bin_.high), "whisker ink"
            ),
            disc(frame.x(bin_.predicted), frame.y(bin_.observed), "ink", 4.5),
        )
        for bin_ in bins
    ]
    return svg(
        title,
        frame.y_axis(SHARES),
        frame.curve((0.0, 1.0), (0.0, 1.0), "diagonal"),
        join(marks),
        frame.x_axis("predicted probability of positive"),
    )
