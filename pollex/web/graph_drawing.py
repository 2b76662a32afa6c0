"""The graph of a run as SVG: nodes by longest path, back edges below."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pollex.reports.svg import element, svg
from pollex.web.run_page import Node
from pollex.web.words import duration

WIDE, HIGH, GAP, ROW = 128, 46, 36, 70
SHORT = 26
"""Characters of what a node changed that stand below it."""
LONG = 960
"""Pixels; longer drawings shrink to a page, but not below that."""
Edges = Sequence[tuple[str, str, bool]]


def layers(edges: Edges) -> dict[str, int]:
    """Return each node's distance from the start, back edges left out."""
    found = {"__start__": 0}
    waiting = ["__start__"]
    while waiting:
        node = waiting.pop(0)
        for source, target, _ in edges:
            if source == node and target not in found:
                found[target] = found[node] + 1
                waiting.append(target)
    return found


def drawing(graph: Mapping[str, Any], ran: Mapping[str, Node], told: Mapping[str, str]) -> Markup:
    """Draw a graph with what ran in it.

    Args:
        told: By node, what it changed in the state; such a node leads to its state.
    """
    edges = [(str(source), str(target), bool(chosen)) for source, target, chosen in graph["edges"]]
    depth = layers(edges)
    columns: dict[int, list[str]] = defaultdict(list)
    for name in depth:
        if not name.startswith("__"):
            columns[depth[name]].append(name)
    place = {
        name: ((column - 1) * (WIDE + GAP) + 4, 8 + row * ROW)
        for column, names in columns.items()
        for row, name in enumerate(names)
    }
    height = max((y for _, y in place.values()), default=0) + HIGH + 44
    width = max((x for x, _ in place.values()), default=0) + WIDE + 8
    lines = [_edge(place[a], place[b], chosen, height) for a, b, chosen in edges if a in place and b in place]
    boxes = [_box(name, *place[name], ran.get(name), told.get(name)) for name in place]
    summary = f"The graph: {sum(name in ran for name in place)} of {len(place)} nodes ran; the table below lists them"
    kind = "graph long" if width > LONG else "graph"
    return svg(summary, lines, boxes, width=width, height=height, class_=kind, fixed=True)


def _box(name: str, x: float, y: float, node: Node | None, told: str | None) -> Markup:
    ran = told is not None or node is not None  # what only waits, or chooses, has no span
    kind = "failed" if node is not None and node.errors else "ran" if ran else "unreached"
    below = f"{node.n:,} × {duration(node.median)}" if node is not None else "ran" if ran else "not reached"
    if node is not None and node.errors:
        below += f", {node.errors} failed"
    inside = [
        element("rect", x=x, y=y, width=WIDE, height=HIGH, rx=5, class_=f"node {kind}"),
        element("text", name, x=x + WIDE / 2, y=y + 19, text_anchor="middle", class_="node-name"),
        element("text", below, x=x + WIDE / 2, y=y + 36, text_anchor="middle", class_="tick"),
    ]
    if told is not None:
        short = told if len(told) <= SHORT else f"{told[: SHORT - 1]}…"
        below = element("text", short, x=x + WIDE / 2, y=y + HIGH + 14, text_anchor="middle", class_="tick")
        return element("a", [element("title", f"{name}: {told}"), *inside, below], href=f"#state-{name}")
    return element("a", inside, href=f"#node-{name}") if node is not None else element("g", inside)


def _edge(start: tuple[float, float], end: tuple[float, float], chosen: bool, height: float) -> Markup:
    kind = "edge chosen" if chosen else "edge"
    (x, y), (to, down) = start, end
    if to > x:
        a, b, middle = x + WIDE, y + HIGH / 2, (x + WIDE + to) / 2
        way = f"M{a:.0f} {b:.0f}C{middle:.0f} {b:.0f} {middle:.0f} {down + HIGH / 2:.0f} {to:.0f} {down + HIGH / 2:.0f}"
    else:
        low = height - 8
        out, back = x + WIDE / 2, to + WIDE / 2
        way = f"M{out:.0f} {y + HIGH:.0f}C{out:.0f} {low:.0f} {back:.0f} {low:.0f} {back:.0f} {down + HIGH:.0f}"
    return element("path", d=way, class_=kind)


def strip(node: Node, bins: int) -> Markup:
    """Draw how many spans of a node were open at once, over time."""
    active = node.active
    if not active.any():
        return Markup("")
    top = float(active.max())
    points = " ".join(f"{i},{22 - 20 * n / top:.1f}" for i, n in enumerate(active.tolist()))
    area = element("path", d=f"M0,22 L{points} L{bins - 1},22Z", class_="activity")
    title = element("title", f"{node.name}: at most {top:,.0f} at once")
    return element("svg", title, area, viewBox=f"0 0 {bins} 23", preserveAspectRatio="none", class_="strip", role="img")
