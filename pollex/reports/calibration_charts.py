"""Charts of the page on a calibrator: reliability, judges' curves, and the learning curve."""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from pollex.calibration.response_curves import ResponseCurve
from pollex.measures.reliability import Reliability
from pollex.reports.calibration import LearningPoint, PredictedScores
from pollex.reports.learning_charts import bin_mark
from pollex.reports.numbers import SHARES, count, number
from pollex.reports.svg import Frame, disc, group, svg, ticks

THIN = 0.2
"""Below this share of the mean density, a smoothed curve rests on too few predictions to be drawn."""


def reliability_chart(diagram: Reliability, labels: int, title: str = "", noun: str = "judgment") -> Markup:
    """Draw observed against predicted frequency: a smoothed curve with band, and bins."""
    frame = Frame.over((0.0, 1.0), (0.0, 1.0))
    thick = np.flatnonzero(diagram.density >= THIN)
    within = slice(int(thick[0]), int(thick[-1]) + 1) if len(thick) else slice(0)
    mesh, low, curve, high = (
        array[within].tolist() for array in (diagram.mesh, diagram.low, diagram.curve, diagram.high)
    )
    return svg(
        title or f"Answer {diagram.value:g}: given against predicted, {labels} labels",
        frame.y_axis(SHARES),
        frame.area(mesh, low, high, "band"),
        frame.curve((0.0, 1.0), (0.0, 1.0), "diagonal"),
        frame.curve(mesh, curve, "positive"),
        [bin_mark(frame, each, noun, "given", 3.0) for each in diagram.bins],
        frame.x_axis("predicted probability"),
    )


def response_chart(title: str, mesh: Sequence[float], curves: Sequence[ResponseCurve]) -> Markup:
    """Draw a line for each judge; an unknown judge bold, the LLM's answer dotted."""
    every = [value for curve in curves for value in curve.predicted]
    low, high = min([*mesh, *every]), max([*mesh, *every])
    frame = Frame.over((mesh[0], mesh[-1]), (low, high))
    return svg(
        title,
        frame.y_axis(ticks(low, high, 5)),
        frame.curve(mesh, mesh, "own"),
        [
            group(f"judge {each.judge}, {count(each.labels, 'label')}", frame.curve(mesh, each.predicted, "judge"))
            for each in curves
            if each.judge is not None
        ],
        [frame.curve(mesh, each.predicted, "ink") for each in curves if each.judge is None],
        frame.x_axis("the LLM's expected answer"),
    )


def density_chart(title: str, scores: PredictedScores) -> Markup:
    """Draw the density of predicted scores with its band, and their mean."""
    top = max([*scores.density, *scores.high])
    frame = Frame.over((scores.mesh[0], scores.mesh[-1]), (0.0, top))
    return svg(
        title,
        frame.y_axis(ticks(0.0, top, 3)),
        frame.area(scores.mesh, scores.low, scores.high, "band") if scores.low else None,
        frame.curve(scores.mesh, scores.density, "positive"),
        frame.vline(scores.mean.value or 0.0, "reference", f"mean {number(scores.mean.value)}"),
        frame.x_axis("predicted answer, mean over judges"),
    )


def learning_chart(points: Sequence[LearningPoint]) -> Markup:
    """Draw log-loss against labels, with the standard deviation over draws."""
    known = [(point, point.log_loss, point.deviation or 0.0) for point in points if point.log_loss is not None]
    ends = [loss + sign * spread for _, loss, spread in known for sign in (-1, 1)]
    room = 0.05 * (max(ends) - min(ends)) or 0.01
    low, high = min(ends) - room, max(ends) + room
    frame = Frame.over((0.0, max(point.labels for point, _, _ in known)), (low, high))
    return svg(
        "Held-out log-loss against labels in training",
        frame.y_axis(ticks(low, high, 5)),
        frame.curve([point.labels for point, _, _ in known], [loss for _, loss, _ in known], "ink"),
        [_draws(frame, point, loss, spread) for point, loss, spread in known],
        frame.x_axis("labels of the main question in training"),
    )


def _draws(frame: Frame, point: LearningPoint, loss: float, spread: float) -> Markup:
    said = f"{point.labels:.0f} labels: log-loss {number(loss, 3)} over {count(point.draws, 'draw')}"
    whisker = frame.whisker(point.labels, loss - spread, loss + spread) if spread else None
    return group(said, whisker, disc(frame.x(point.labels), frame.y(loss), "ink"))
