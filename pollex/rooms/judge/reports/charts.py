"""Charts of how right ratings are, on either side of τ."""

from collections.abc import Sequence

from markupsafe import Markup

from pollex.reports.numbers import SHARE_AXIS_MARKS, is_known
from pollex.reports.svg import ChartFrame, draw_disc, make_svg
from pollex.rooms.judge.selection.consensus import TauPoint

CHART_LEGEND = [("positive", "right, DE ≤ τ"), ("negative", "right, DE > τ"), ("ink", "coverage")]


def draw_chart_by_runs(points: Sequence[TauPoint]) -> Markup:
    """Draw coverage, and the share that is right on both sides, by the number of runs."""
    return _draw_chart(
        "by the number of runs",
        "runs",
        [(float(point.n), point) for point in points],
    )


def draw_chart_by_tau(points: Sequence[TauPoint]) -> Markup:
    """Draw the same by τ, with all runs."""
    most = max(point.n for point in points)
    return _draw_chart(
        "by τ",
        "τ in nats",
        [(point.tau, point) for point in points if point.n == most],
    )


def _draw_chart(
    title: str,
    axis: str,
    points: Sequence[tuple[float, TauPoint]],
) -> Markup:
    frame = ChartFrame.over((points[0][0], points[-1][0]), (0.0, 1.0))
    # points as (x, share), by colour
    series = {
        "positive": [(x, point.sides.passed.precision) for x, point in points],
        "negative": [(x, point.sides.left.precision) for x, point in points],
        "ink": [(x, point.sides.coverage) for x, point in points],
    }
    # a share without conversations has no point
    shown = {}
    for name, every in series.items():
        shown[name] = [
            (x, share.value, share.low, share.high) for x, share in every if is_known(share.value)
        ]

    return make_svg(
        f"Coverage, and share of ratings that are right on either side of τ, {title}",
        frame.y_axis(SHARE_AXIS_MARKS),
        # curves first, so that whiskers and points lie above them
        [
            frame.curve([x for x, *_ in every], [y for _, y, *_ in every], name)
            for name, every in shown.items()
        ],
        [
            (frame.whisker(x, low, high), draw_disc(frame.x(x), frame.y(y), name, 3.0))
            for name, every in shown.items()
            for x, y, low, high in every
        ],
        frame.x_axis(axis),
    )
