"""The page on the share of good conversations: estimate, uncertainty, then groups."""

from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from pollex.measures.share import Share
from pollex.reports.page import render_template
from pollex.reports.svg import (
    Axis,
    choose_ticks,
    draw_disc,
    draw_line,
    draw_text,
    format_tick,
    make_element,
    make_svg,
)

FOREST_PLOT_WIDTH_PIXELS = 640
FOREST_PLOT_ROW_HEIGHT_PIXELS = 24
FOREST_PLOT_NAME_COLUMN_WIDTH_PIXELS = 190


def render_share_page(result: Any) -> str:
    """Render the whole page of a `services.share.ShareResult`.

    Returns:
        HTML, the same for the same arguments. Write it as UTF-8.
    """
    groups = f"Share of good conversations by {result.by}"
    return render_template(
        "share.html",
        file="",
        titles={},
        found=result,
        drawing=draw_forest_plot("Share of good conversations", result.lines),
        groups_drawing=draw_forest_plot(
            groups, [(group.name, share) for group, share in result.group_lines]
        )
        if result.groups
        else "",
        facts={"conversations": f"{result.total.conversations:,}"},
    )


def draw_forest_plot(title: str, estimates: Iterable[tuple[str, Share | None]]) -> Markup:
    """Draw an interval a line, over shares from 0 to 1; none where there is no estimate."""
    shown = []
    for name, share in estimates:
        if share is not None:
            shown.append((name, share))

    # a row for each share, and one for the axis
    height = FOREST_PLOT_ROW_HEIGHT_PIXELS * (len(shown) + 1) + 12
    scale = Axis(0.0, 1.0, FOREST_PLOT_NAME_COLUMN_WIDTH_PIXELS, FOREST_PLOT_WIDTH_PIXELS - 20)
    grid = []
    for v in choose_ticks(0.0, 1.0, 6):
        grid.append(
            (
                draw_line(scale(v), 4, scale(v), height - FOREST_PLOT_ROW_HEIGHT_PIXELS, "grid"),
                draw_text(scale(v), height - 8, format_tick(v), "tick", "middle"),
            )
        )

    rows = []
    for place, (name, share) in enumerate(shown):
        y = FOREST_PLOT_ROW_HEIGHT_PIXELS * place + FOREST_PLOT_ROW_HEIGHT_PIXELS / 2 + 4
        # a longer name would leave its column
        short = name if len(name) <= 28 else f"{name[:27]}…"
        whisker = draw_line(
            scale(share.low),
            y,
            scale(share.high),
            y,
            "whisker ink",
        )
        rows.append(
            make_element(
                "g",
                draw_text(FOREST_PLOT_NAME_COLUMN_WIDTH_PIXELS - 10, y + 4, short, "tick", "end"),
                whisker,
                draw_disc(scale(share.value), y, "ink"),
            )
        )

    return make_svg(title, grid, rows, width=FOREST_PLOT_WIDTH_PIXELS, height=height)


def render_compare_page(comparisons: Sequence[Any], verdicts: Sequence[object] = ()) -> str:
    """Render the whole page.

    Args:
        comparisons: Results of `services.compare`, one for each sample but the first.
        verdicts: Conditions of a gate, as `services.check` decided them.

    Returns:
        HTML, the same for the same arguments. Write it as UTF-8.
    """
    first = comparisons[0].first
    facts = {"compared with": first}
    sections = {
        "comparisons": comparisons,
        "verdicts": verdicts,
        "first": first,
        "facts": facts,
    }
    return render_template("compare.html", file="", titles={}, **sections)
