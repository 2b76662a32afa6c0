"""The page on the share of good conversations: estimate, uncertainty, then groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from pollex.measures.share import Share
from pollex.reports.page import render
from pollex.reports.svg import Axis, disc, element, line, svg, text, tick_label, ticks

WIDTH, ROW, NAMES = 640, 24, 190


@dataclass(frozen=True)
class NamedEstimate:
    """An estimate with its name.

    Attributes:
        share: None where there are too few labels.
        why_not: What is missing then.
    """

    name: str
    conversations: int
    share: Share | None
    why_not: str = ""


def share_page(found: Any) -> str:
    """Render the whole page of a `services.share.ShareResult`.

    Returns:
        HTML, the same for the same arguments. Write it as UTF-8.
    """
    groups = f"Share of good conversations by {found.by}"
    return render(
        "share.html",
        file="",
        titles={},
        found=found,
        drawing=forest("Share of good conversations", found.lines),
        groups_drawing=forest(groups, found.group_lines) if found.groups else "",
        facts={"conversations": f"{found.total.conversations:,}"},
    )


def forest(title: str, lines: Sequence[NamedEstimate]) -> Markup:
    """Draw an interval a line, over shares from 0 to 1."""
    shown = [one for one in lines if one.share is not None]
    height = ROW * (len(shown) + 1) + 12
    scale = Axis(0.0, 1.0, NAMES, WIDTH - 20)
    grid = [
        (line(scale(v), 4, scale(v), height - ROW, "grid"), text(scale(v), height - 8, tick_label(v), "tick", "middle"))
        for v in ticks(0.0, 1.0, 6)
    ]
    rows = [_row(one, scale, ROW * place + ROW / 2 + 4) for place, one in enumerate(shown)]
    return svg(title, grid, rows, width=WIDTH, height=height)


def _row(one: NamedEstimate, scale: Axis, y: float) -> Markup:
    assert one.share is not None, "only those with an estimate are drawn"
    name = one.name if len(one.name) <= 28 else f"{one.name[:27]}…"
    ends = scale(one.share.low), scale(one.share.high)
    return element(
        "g",
        text(NAMES - 10, y + 4, name, "tick", "end"),
        line(ends[0], y, ends[1], y, "whisker ink"),
        disc(scale(one.share.value), y, "ink"),
    )


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
    given = {"comparisons": comparisons, "verdicts": verdicts, "first": first, "facts": facts}
    return render("compare.html", file="", titles={}, **given)
