"""Charts of a calibrator: how judges answer, how predictions are spread, and what more labels bring."""

from collections.abc import Sequence

from markupsafe import Markup

from pollex.reports.numbers import format_grouped_count, format_number
from pollex.reports.svg import ChartFrame, choose_ticks, draw_disc, make_group, make_svg
from pollex.rooms.questionnaire.calibration.response_curves import ResponseCurve
from pollex.rooms.questionnaire.reports.calibration import LearningPoint, PredictedScores


def draw_response_chart(
    title: str,
    mesh: Sequence[float],
    curves: Sequence[ResponseCurve],
) -> Markup:
    """Draw a line for each judge; an unknown judge bold, the LLM's answer dotted."""
    # one scale for the diagonal and all judges
    every = [value for curve in curves for value in curve.predicted]
    low = min([*mesh, *every])
    high = max([*mesh, *every])
    frame = ChartFrame.over((mesh[0], mesh[-1]), (low, high))

    return make_svg(
        title,
        frame.y_axis(choose_ticks(low, high, 5)),
        frame.curve(mesh, mesh, "own"),
        [
            make_group(
                f"judge {curve.judge}, {format_grouped_count(curve.labels, 'label')}",
                frame.curve(mesh, curve.predicted, "judge"),
            )
            for curve in curves
            if curve.judge is not None
        ],
        [frame.curve(mesh, curve.predicted, "ink") for curve in curves if curve.judge is None],
        frame.x_axis("the LLM's expected answer"),
    )


def draw_density_chart(title: str, scores: PredictedScores) -> Markup:
    """Draw the density of predicted scores with its band, and their mean."""
    # the band may rise above the curve
    top = max([*scores.density, *scores.high])
    frame = ChartFrame.over((scores.mesh[0], scores.mesh[-1]), (0.0, top))
    return make_svg(
        title,
        frame.y_axis(choose_ticks(0.0, top, 3)),
        frame.area(scores.mesh, scores.low, scores.high, "band") if scores.low else None,
        frame.curve(scores.mesh, scores.density, "positive"),
        frame.vline(
            scores.mean.value or 0.0, "reference", f"mean {format_number(scores.mean.value)}"
        ),
        frame.x_axis("predicted answer, mean over judges"),
    )


def draw_learning_chart(points: Sequence[LearningPoint]) -> Markup:
    """Draw log-loss against labels, with the standard deviation over draws."""
    measured = []
    for point in points:
        if point.log_loss is not None:
            measured.append((point, point.log_loss, point.deviation or 0.0))

    # deviations on both sides have to fit
    ends = []
    for _, loss, spread in measured:
        for sign in (-1, 1):
            ends.append(loss + sign * spread)

    room = 0.05 * (max(ends) - min(ends)) or 0.01
    low = min(ends) - room
    high = max(ends) + room
    frame = ChartFrame.over(
        (0.0, max(point.labels for point, _, _ in measured)),
        (low, high),
    )

    return make_svg(
        "Held-out log-loss against labels in training",
        frame.y_axis(choose_ticks(low, high, 5)),
        frame.curve(
            [point.labels for point, _, _ in measured], [loss for _, loss, _ in measured], "ink"
        ),
        [
            make_group(
                f"{point.labels:.0f} labels: log-loss {format_number(loss, 3)} over "
                f"{format_grouped_count(point.draws, 'draw')}",
                frame.whisker(point.labels, loss - spread, loss + spread) if spread else None,
                draw_disc(frame.x(point.labels), frame.y(loss), "ink"),
            )
            for point, loss, spread in measured
        ],
        frame.x_axis("labels of the main question in training"),
    )
