"""The page on the share of good conversations: estimate, uncertainty, then groups."""

from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from pollex.measures.share import Share
from pollex.reports.page import render
from pollex.reports.svg import Axis, disc, element, line, svg, text, tick_label, ticks

WIDTH = 640
ROW = 24
NAMES = 190


def share_page(result: Any) -> str:
    """Render the whole page of a `services.share.ShareResult`.

    Returns:
        HTML, the same for the same arguments. Write it as UTF-8.
    """
    groups = f"Share of good conversations by {result.by}"
    return render(
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
    height = ROW * (len(shown) + 1) + 12
    scale = Axis(0.0, 1.0, NAMES, WIDTH - 20)
    grid = []
    for v in ticks(0.0, 1.0, 6):
        grid.append(
            (
                line(scale(v), 4, scale(v), height - ROW, "grid"),
                text(scale(v), height - 8, tick_label(v), "tick", "middle"),
            )
        )

    rows = []
    for place, (name, share) in enumerate(shown):
        y = ROW * place + ROW / 2 + 4
        # a longer name would leave its column
        short = name if len(name) <= 28 else f"{name[:27]}…"
        whisker = line(
            scale(share.low),
            y,
            scale(share.high),
            y,
            "whisker ink",
        )
        rows.append(
            element(
                "g",
                text(NAMES - 10, y + 4, short, "tick", "end"),
                whisker,
                disc(scale(share.value), y, "ink"),
            )
        )

    return svg(title, grid, rows, width=WIDTH, height=height)


def compare_page(comparisons: Sequence[Any], verdicts: Sequence[Any] = ()) -> str:
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
    return render("compare.html", file="", titles={}, **sections)
