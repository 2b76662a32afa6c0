"""Charts of the page about a calibrator: reliability, judges' curves, learning curve, gains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pollex.measures.arrays import Floats
from pollex.measures.intervals import Measured
from pollex.measures.reliability import Reliability
from pollex.web.calibration_material import LearningPoint, ResponseCurve
from pollex.web.markup import Markup, tag
from pollex.web.plots import Frame, Scale, disc, line, nice_step, svg, text, tick_label, ticks
from pollex.web.words import count, known, number, percent

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
THIN = 0.2
"""Where fewer predictions than this share of the mean density lie, a smoothed curve says nothing."""
SPARK = 180, 24
SHOWN = 1e-6
"""A scale that is narrower would have 0 written at both its ends."""


def reliability_chart(title: str, diagram: Reliability) -> Markup:
    """How often an answer was given against how often it was predicted: smoothed with its band, and in bins."""
    frame = Frame.over((0.0, 1.0), (0.0, 1.0))
    thick = np.flatnonzero(diagram.density >= THIN)
    within = slice(int(thick[0]), int(thick[-1]) + 1) if len(thick) else slice(0)
    return svg(
        title,
        frame.y_axis(SHARES),
        _band(frame, diagram, within),
        frame.curve((0.0, 1.0), (0.0, 1.0), "diagonal"),
        frame.curve(diagram.mesh[within].tolist(), diagram.curve[within].tolist(), "positive"),
        [_bin(frame, each.predicted, each.share) for each in diagram.bins],
        frame.x_axis("predicted probability"),
    )


def _band(frame: Frame, diagram: Reliability, within: slice) -> Markup | None:
    if not len(diagram.mesh[within]):
        return None
    there, back = diagram.mesh[within], diagram.mesh[within][::-1]
    return _area(
        frame,
        np.concatenate([there, back]),
        np.concatenate([diagram.low[within], diagram.high[within][::-1]]),
    )


def _area(frame: Frame, xs: Floats, ys: Floats) -> Markup:
    points = [f"{frame.x(x):.1f} {frame.y(y):.1f}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]
    return tag("path", d=f"M{'L'.join(points)}Z", class_="band")


def _bin(frame: Frame, predicted: float, share: Measured) -> Markup | None:
    if not known(share.value):
        return None
    x, whole = frame.x(predicted), known(share.low) and known(share.high)
    said = f"{count(share.n, 'judgment')}: predicted {percent(predicted)}, given {percent(share.value)}"
    return tag(
        "g",
        tag("title", said),
        line(x, frame.y(share.low), x, frame.y(share.high), "whisker ink")
        if whole and known(share.low) and known(share.high)
        else None,
        disc(x, frame.y(share.value), "ink", 3.0),
    )


def response_chart(title: str, mesh: Sequence[float], curves: Sequence[ResponseCurve]) -> Markup:
    """A line a judge; somebody unknown in bold, the LLM's own answer dotted."""
    every = [value for curve in curves for value in curve.predicted]
    low, high = min([*mesh, *every]), max([*mesh, *every])
    frame = Frame.over((mesh[0], mesh[-1]), (low, high))
    judges = [curve for curve in curves if curve.judge is not None]
    strangers = [curve for curve in curves if curve.judge is None]
    return svg(
        title,
        frame.y_axis(ticks(low, high, 5)),
        frame.curve(mesh, mesh, "own"),
        [_judge(frame, mesh, curve) for curve in judges],
        [frame.curve(mesh, curve.predicted, "ink") for curve in strangers],
        frame.x_axis("the LLM's expected answer"),
    )


def _judge(frame: Frame, mesh: Sequence[float], curve: ResponseCurve) -> Markup:
    drawn = frame.curve(mesh, curve.predicted, "judge")
    return tag("g", tag("title", f"judge {curve.judge}, {count(curve.labels, 'label')}"), drawn)


def learning_chart(title: str, points: Sequence[LearningPoint]) -> Markup:
    """Log-loss against labels, with the standard deviation over draws."""
    known_points = [(point, point.log_loss) for point in points if point.log_loss is not None]
    ends = [loss + sign * (point.deviation or 0.0) for point, loss in known_points for sign in (-1, 1)]
    room = 0.05 * (max(ends) - min(ends)) or 0.01
    most = max(point.labels for point, _ in known_points)
    low, high = min(ends) - room, max(ends) + room
    frame = Frame.over((0.0, most), (low, high))
    return svg(
        title,
        frame.y_axis(ticks(low, high, 5)),
        frame.curve([point.labels for point, _ in known_points], [loss for _, loss in known_points], "ink"),
        [_draws(frame, point, loss) for point, loss in known_points],
        frame.x_axis("labels of the main question in training"),
    )


def _draws(frame: Frame, point: LearningPoint, loss: float) -> Markup:
    x, spread = frame.x(point.labels), point.deviation or 0.0
    said = f"{point.labels:.0f} labels: log-loss {number(loss, 3)} over {count(point.draws, 'draw')}"
    whisker = line(x, frame.y(loss - spread), x, frame.y(loss + spread), "whisker ink") if spread else None
    return tag("g", tag("title", said), whisker, disc(x, frame.y(loss), "ink"))


def span_of(figures: Sequence[tuple[float | None, float | None, float | None]]) -> Scale:
    """One scale for the small drawings of a table's rows, 0 on it."""
    found = [end for figure in figures for end in figure if end is not None]
    low, high = min([0.0, *found]), max([0.0, *found])
    step = nice_step(high - low if high - low >= SHOWN else 1.0, 4)
    return Scale(np.floor(low / step) * step, np.ceil(high / step) * step or step, 8, SPARK[0] - 8)


def spark_scale(scale: Scale) -> Markup:
    """The ends of the scale and 0, above a table's rows."""
    labels = [
        text(scale(value), 11, tick_label(round(value, 6)), "tick", "middle")
        for value in dict.fromkeys([scale.low, 0.0, scale.high])
    ]
    return svg("Scale", *labels, width=SPARK[0], height=14, class_="spark")


def spark(name: str, value: float | None, low: float | None, high: float | None, scale: Scale) -> Markup:
    """A figure with its interval beside 0."""
    y = SPARK[1] / 2
    whisker = None
    if low is not None and high is not None:
        whisker = line(scale(low), y, scale(high), y, "whisker held-out")
    return svg(
        f"{name}: {number(value, 3)}",
        line(scale.start, y, scale.end, y, "grid"),
        line(scale(0.0), 0, scale(0.0), SPARK[1], "reference"),
        whisker,
        disc(scale(value), y, "held-out") if value is not None else None,
        width=SPARK[0],
        height=SPARK[1],
        class_="spark",
    )
