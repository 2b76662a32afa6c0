"""Statistics of a run from its spans: nodes, activity and errors; its graph, and what it came to."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import chain

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from pollex.measures.arrays import Floats
from pollex.reports.svg import make_element, make_svg
from pollex.rooms import iterate_part_folders
from pollex.store.runs import Run
from pollex.store.store import Store
from pollex.text import JsonDict
from pollex.web.frame import format_duration

MAX_STRIP_BINS = 400
SPAN_PLACES_QUERY = "SELECT min(rowid), max(rowid) FROM spans WHERE run = ?"
SPANS_OF_RUN_CLAUSE = "FROM spans WHERE rowid BETWEEN ?1 AND ?2 AND +run = ?3"
"""A run's spans lie together: read in their own order they come six times as fast as by the index on items."""

SPAN_NAMES_QUERY = f"SELECT DISTINCT name, kind {SPANS_OF_RUN_CLAUSE}"
SPANS_QUERY = f"""
    SELECT group_concat(substr(started, 1, 26), ''), group_concat(CAST(round(1000 * ms) AS INTEGER)),
        group_concat(2 * CASE {{cases}} END + (error NOT IN ('', 'cancelled'))) {SPANS_OF_RUN_CLAUSE}
"""
"""Whole columns come as one text each, since a row in Python costs more than all else; names come as numbers, odd
where the span ended with an error."""

ERRORS_QUERY = """
    SELECT name, error, count(*) AS n, min(item) AS item FROM spans WHERE run = ? AND error NOT IN ('', 'cancelled')
    GROUP BY name, error ORDER BY n DESC LIMIT 100
"""


@dataclass(frozen=True, eq=False)
class SpansOfName:
    """All spans of one name, as columns.

    Attributes:
        began: Milliseconds since the run began `[span]`; `ms` is how long each took.
        errors: How many ended with an error.
    """

    name: str
    kind: str
    began: Floats
    ms: Floats
    errors: int


def read_spans(store: Store, run: Run) -> list[SpansOfName]:
    """Read a run's spans by name, in the order in which they began."""
    # a run's spans lie between two row numbers
    ((first, last),) = store.each(SPAN_PLACES_QUERY, [run.id])
    place = [first, last, run.id]
    names = list(store.each(SPAN_NAMES_QUERY, place))
    if not names:
        return []

    # a number for each name and kind, which are parameters from the fourth on
    case_texts = []
    for n in range(len(names)):
        case_texts.append(f"WHEN name = ?{2 * n + 4} AND kind = ?{2 * n + 5} THEN {n}")
    cases = " ".join(case_texts)
    ((started, took, of),) = store.each(
        SPANS_QUERY.format(cases=cases),
        [*place, *chain(*names)],
    )
    # milliseconds since the run began, in the time zone of the store, UTC
    zero = np.datetime64(
        datetime.fromisoformat(run.started).replace(tzinfo=None),
        "us",
    )
    began = (_parse_moments(started) - zero) / np.timedelta64(1, "ms")
    # durations come as whole thousandths
    ms = _parse_numbers(took) / 1000
    marks = _parse_numbers(of)
    rows = [marks // 2 == n for n in range(len(names))]
    panels = []
    for (name, kind), row in zip(names, rows, strict=True):
        panels.append(
            SpansOfName(
                name,
                kind,
                began[row],
                ms[row],
                int((marks[row] % 2).sum()),
            )
        )

    return sorted(panels, key=lambda spans: float(spans.began.min()))


def _parse_moments(text: str) -> npt.NDArray[np.datetime64]:
    """Return times of 26 characters each, `2026-01-31T23:59:59.000000`, to the microsecond `[span]`."""
    # a row of characters for each time `[span, 26]`
    digits = np.frombuffer(text.encode(), np.uint8).reshape(-1, 26)
    # a run has few days: each is read as a date once
    days, which = np.unique(
        np.ascontiguousarray(digits[:, :10]).view("S10")[:, 0],
        return_inverse=True,
    )
    # digits of hours down to microseconds, and how many microseconds each is worth
    places = [11, 12, 14, 15, 17, 18, *range(20, 26)]
    worth = np.array([36000, 3600, 600, 60, 10, 1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6]) * 1e6
    since = (digits[:, places].astype(np.int64) - ord("0")) @ worth.round().astype(np.int64)

    moments: npt.NDArray[np.datetime64] = days.astype("datetime64[us]")[which] + since.astype(
        "timedelta64[us]"
    )
    return moments


def _parse_numbers(text: str) -> Floats:
    return np.fromstring(text, sep=",")


@dataclass(frozen=True)
class NodeActivity:
    """All spans of one name.

    Attributes:
        together: Milliseconds of all, added up; `median` and `most` (95 %) of one.
        active: How many were open at once, in `MAX_STRIP_BINS` stretches of time.
    """

    name: str
    kind: str
    n: int
    together: float
    median: float
    most: float
    errors: int
    active: Floats


@dataclass(frozen=True)
class RunTimes:
    """A run's nodes over a stretch of its time, in milliseconds since it began."""

    nodes: tuple[NodeActivity, ...]
    first: float
    last: float

    @property
    def by_name(self) -> dict[str, NodeActivity]:
        """Nodes by name, without calls, which bear the name of the node that made them."""
        return {node.name: node for node in self.nodes if node.kind != "call"}


def sum_times(
    spans: Sequence[SpansOfName],
    first: float | None = None,
    last: float | None = None,
) -> RunTimes:
    """Sum a run's spans, and count open ones between two seconds since the run began."""
    if not spans:
        return RunTimes((), 0.0, 0.0)

    if first is None:
        low = min(float(span.began.min()) for span in spans)
    else:
        low = 1000 * first

    if last is None:
        end = max(float((span.began + span.ms).max()) for span in spans)
    else:
        end = 1000 * last

    # not empty, as it is divided into stretches
    high = max(end, low + 1)
    return RunTimes(tuple(_make_node(span, low, high) for span in spans), low, high)


def _make_node(spans: SpansOfName, low: float, high: float) -> NodeActivity:
    median, most = np.quantile(spans.ms, [0.5, 0.95], method="inverted_cdf")
    active = _count_active(spans.began, spans.ms, low, high)
    together = float(spans.ms.sum())

    return NodeActivity(
        spans.name,
        spans.kind,
        len(spans.ms),
        together,
        float(median),
        float(most),
        spans.errors,
        active,
    )


def _count_active(
    began: Floats,
    ms: Floats,
    low: float,
    high: float,
) -> Floats:
    # a span opens in one stretch and closes in another: counts of both, added up `[stretch]`
    is_shown = (began <= high) & (began + ms >= low)
    width = (high - low) / MAX_STRIP_BINS
    starts = np.clip((began[is_shown] - low) // width, 0, MAX_STRIP_BINS - 1).astype(np.int64)
    ends = np.clip((began[is_shown] + ms[is_shown] - low) // width + 1, 0, MAX_STRIP_BINS).astype(
        np.int64
    )
    changes = np.bincount(starts, minlength=MAX_STRIP_BINS + 1) - np.bincount(
        ends, minlength=MAX_STRIP_BINS + 1
    )

    return np.cumsum(changes)[:MAX_STRIP_BINS].astype(np.float64)


@cache
def read_drawn_graphs() -> dict[str, JsonDict]:
    """Read the graphs that `make docs` draws: nodes, and edges with their kind."""
    graphs: dict[str, JsonDict] = {}
    for folder in iterate_part_folders("web"):
        if (folder / "graphs.json").is_file():
            graphs |= json.loads((folder / "graphs.json").read_text("utf-8"))
    return graphs


BOX_WIDTH = 128
BOX_HEIGHT = 46
BOX_GAP = 36
ROW_DISTANCE = 70
MAX_CHANGE_CHARACTERS = 26
"""Characters of what a node changed that stand below it."""
MIN_DRAWING_WIDTH = 960
"""Pixels; longer drawings shrink to a page, but not below that."""
GraphEdges = Sequence[tuple[str, str, bool]]


def find_layers(edges: GraphEdges) -> dict[str, int]:
    """Return each node's distance from the start, back edges left out."""
    # breadth first, so that a node has its shortest distance
    depths = {"__start__": 0}
    waiting = ["__start__"]
    while waiting:
        node = waiting.pop(0)
        for source, target, _ in edges:
            if source == node and target not in depths:
                depths[target] = depths[node] + 1
                waiting.append(target)

    return depths


def draw_graph(
    graph: JsonDict,
    ran: Mapping[str, NodeActivity],
    told_by_node: Mapping[str, str],
) -> Markup:
    """Draw a graph with what ran in it.

    Args:
        told: By node, what it changed in the state; such a node leads to its state.
    """
    edges = []
    for source, target, chosen in graph["edges"]:
        edges.append((str(source), str(target), bool(chosen)))

    # a column for each distance from the start, and the nodes of a column one below another
    depth = find_layers(edges)
    columns: dict[int, list[str]] = defaultdict(list)
    for name in depth:
        if not name.startswith("__"):
            columns[depth[name]].append(name)

    place = {}
    for column, names in columns.items():
        for row, name in enumerate(names):
            place[name] = ((column - 1) * (BOX_WIDTH + BOX_GAP) + 4, 8 + row * ROW_DISTANCE)

    # room below the boxes for edges that lead back
    height = max((y for _, y in place.values()), default=0) + BOX_HEIGHT + 44
    width = max((x for x, _ in place.values()), default=0) + BOX_WIDTH + 8
    lines = []
    for a, b, chosen in edges:
        if a in place and b in place:
            lines.append(_draw_edge(place[a], place[b], chosen, height))

    boxes = []
    for name, corner in place.items():
        boxes.append(
            _draw_box(
                name,
                *corner,
                ran.get(name),
                told_by_node.get(name),
            )
        )

    summary = f"The graph: {sum(name in ran for name in place)} of {len(place)} nodes ran; the table below lists them"
    kind = "graph long" if width > MIN_DRAWING_WIDTH else "graph"
    return make_svg(
        summary,
        lines,
        boxes,
        width=width,
        height=height,
        class_=kind,
        fixed=True,
    )


def _draw_box(
    name: str,
    x: float,
    y: float,
    node: NodeActivity | None,
    told_here: str | None,
) -> Markup:
    ran = told_here is not None or node is not None  # what only waits, or chooses, has no span
    if node is not None and node.errors:
        kind = "failed"
    elif ran:
        kind = "ran"
    else:
        kind = "unreached"

    if node is not None:
        below = f"{node.n:,} × {format_duration(node.median)}"
    elif ran:
        below = "ran"
    else:
        below = "not reached"

    if node is not None and node.errors:
        below += f", {node.errors} failed"

    inside = [
        make_element(
            "rect", x=x, y=y, width=BOX_WIDTH, height=BOX_HEIGHT, rx=5, class_=f"node {kind}"
        ),
        make_element(
            "text", name, x=x + BOX_WIDTH / 2, y=y + 19, text_anchor="middle", class_="node-name"
        ),
        make_element(
            "text", below, x=x + BOX_WIDTH / 2, y=y + 36, text_anchor="middle", class_="tick"
        ),
    ]
    if told_here is not None:
        # what the node changed stands below its box, cut short; the title has all of it
        if len(told_here) <= MAX_CHANGE_CHARACTERS:
            short = told_here
        else:
            short = f"{told_here[: MAX_CHANGE_CHARACTERS - 1]}…"

        below = make_element(
            "text",
            short,
            x=x + BOX_WIDTH / 2,
            y=y + BOX_HEIGHT + 14,
            text_anchor="middle",
            class_="tick",
        )
        return make_element(
            "a",
            [make_element("title", f"{name}: {told_here}"), *inside, below],
            href=f"#state-{name}",
        )
    if node is not None:
        return make_element("a", inside, href=f"#node-{name}")
    return make_element("g", inside)


def _draw_edge(
    start: tuple[float, float],
    end: tuple[float, float],
    chosen: bool,
    height: float,
) -> Markup:
    kind = "edge chosen" if chosen else "edge"
    (x, y), (to, down) = start, end
    if to > x:
        # forward: from the right side of a box to the left side of the next
        a = x + BOX_WIDTH
        b = y + BOX_HEIGHT / 2
        middle = (x + BOX_WIDTH + to) / 2
        way = (
            f"M{a:.0f} {b:.0f}C{middle:.0f} {b:.0f} {middle:.0f} {down + BOX_HEIGHT / 2:.0f} "
            f"{to:.0f} {down + BOX_HEIGHT / 2:.0f}"
        )
    else:
        # back: from bottom to bottom, below all boxes
        low = height - 8
        out = x + BOX_WIDTH / 2
        back = to + BOX_WIDTH / 2
        way = (
            f"M{out:.0f} {y + BOX_HEIGHT:.0f}C{out:.0f} {low:.0f} {back:.0f} {low:.0f} {back:.0f} "
            f"{down + BOX_HEIGHT:.0f}"
        )

    return make_element("path", d=way, class_=kind)


def draw_strip(node: NodeActivity, bins: int) -> Markup:
    """Draw how many spans of a node were open at once, over time."""
    active = node.active
    if not active.any():
        return Markup("")

    # each strip has its own scale
    top = float(active.max())
    points = " ".join(f"{i},{22 - 20 * n / top:.1f}" for i, n in enumerate(active.tolist()))
    area = make_element(
        "path",
        d=f"M0,22 L{points} L{bins - 1},22Z",
        class_="activity",
    )
    title = make_element("title", f"{node.name}: at most {top:,.0f} at once")

    return make_element(
        "svg",
        title,
        area,
        viewBox=f"0 0 {bins} 23",
        preserveAspectRatio="none",
        class_="strip",
        role="img",
    )
