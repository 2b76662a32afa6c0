"""The page of `pollex judge --reference`: how grades are distributed, and what they are on average.

One HTML file that needs nothing else, without a script and without a web address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from pollex.graphs.grade.summary import ALL, HUMAN, RULES, Summary
from pollex.measures.arrays import Floats
from pollex.measures.intervals import Measured
from pollex.web.charts import SHARES
from pollex.web.markup import Markup, escape, join, tag
from pollex.web.page import whole_page
from pollex.web.plots import Frame, svg
from pollex.web.words import count, known, listed, number

LONGEST = 160
"""Characters shown of a name or a category."""

CURVES = {
    HUMAN: ("ink", "people"),
    "plain": ("negative", "plain: no reference, no rules"),
    RULES: ("positive", "by rules, against the reference"),
}
"""Class and name of each judge's curve; dashes and solid lines tell them apart without colour."""

UNEQUAL = (
    "The lines don't rest on the same answers: where a grade is missing, only the others count. "
    "Areas are of the answers that all have graded."
)

SAID = {"overall": "Overall, by rules", "plain": "Overall, plain", "human": "Overall, people"}


def render_grades(found: Summary, *, judge: str, pivot: float, run: str = "") -> str:
    """The whole page.

    Args:
        judge: The model's name.
        pivot: What the reference is worth.

    Returns:
        HTML, the same for the same arguments. Write it as UTF-8.
    """
    parts = [
        ("Distribution", _distribution(found, pivot)),
        ("Means by category and dimension", _means(found)),
        ("What was flagged and left out", _left_out(found)),
    ]
    sections = [tag("section", tag("h2", title), content) for title, content in parts]
    body = [_head(found, judge, pivot), tag("main", sections), _foot(judge, run)]
    return whole_page("pollex: answers graded against references", body, "grades.css")


def _head(found: Summary, judge: str, pivot: float) -> Markup:
    graded = found.outcomes.get("graded", 0)
    worst, best = (number(float(level), 0) for level in found.levels[[0, -1]])
    lede = (
        f"{escape(judge, LONGEST)} graded {count(graded, 'answer')} of {found.n:,} wholly. "
        f"The reference is worth {number(pivot, 0)} on a scale from {worst} to {best}."
    )
    caution = "These are a model's grades. How far they agree with people's is known only where people graded too."
    return tag(
        "header",
        tag("p", "pollex report", class_="eyebrow"),
        tag("h1", "Answers graded against references"),
        tag("p", Markup(lede), class_="lede"),
        None if found.counts.get(HUMAN) else tag("p", caution, class_="lede"),
    )


def _distribution(found: Summary, pivot: float) -> Markup:
    shown = [name for name in CURVES if found.counts.get(name)]
    if not shown:
        return tag("p", "There are no grades.", class_="empty")
    return join(
        [
            tag("p", "Share of answers whose grade is at most so much. The lower the line, the better the grades."),
            _legend(found, shown),
            tag("div", tag("figure", cumulative_plot(found, pivot)), class_="panels"),
            tag("p", UNEQUAL, class_="note") if len({found.counts[name] for name in shown}) > 1 else None,
            _areas(found.areas),
        ]
    )


def cumulative_plot(found: Summary, pivot: float) -> Markup:
    """Cumulative distributions of all judges' grades on one plot, the reference's own grade marked."""
    low, high = float(found.levels[0]), float(found.levels[-1])
    frame = Frame.over((low - 0.5, high), (0.0, 1.0))
    shown = [name for name in CURVES if found.counts.get(name)]
    spoken = listed([f"{CURVES[name][1]} ({count(found.counts[name], 'grade')})" for name in shown])
    curves = [frame.curve(*steps(found.levels, found.shares[name], low - 0.5), CURVES[name][0]) for name in shown]
    return svg(
        f"Cumulative distribution of grades: {spoken}",
        frame.y_axis(SHARES),
        frame.upright(pivot, "level", "reference"),
        curves,
        frame.x_axis("grade"),
    )


def steps(levels: Floats, shares: Floats, start: float) -> tuple[list[float], list[float]]:
    """Corners of a cumulative distribution that is constant between levels, from 0 at `start` on."""
    rises = np.flatnonzero(np.diff(shares, prepend=0.0))  # flat stretches need no corners
    xs = np.concatenate([[start], np.repeat(levels[rises], 2), levels[-1:]])
    after = shares[rises]
    before = np.concatenate([[0.0], after[:-1]])[: len(after)]
    ys = np.concatenate([[0.0], np.stack([before, after], axis=1).ravel(), shares[-1:]])
    return xs.tolist(), ys.tolist()


def _legend(found: Summary, shown: Iterable[str]) -> Markup:
    entries = [
        tag(
            "span",
            tag("span", class_=f"swatch {CURVES[name][0]}"),
            f"{CURVES[name][1]} (n = {found.counts[name]})",
            class_="entry",
        )
        for name in shown
    ]
    return tag("p", *entries, class_="legend")


def _areas(areas: Mapping[str, Measured]) -> Markup | None:
    """How far judges lie from people, and whether the difference between judges is more than noise."""
    rows = [_area_row(name, figure) for name, figure in areas.items()]
    if not rows:
        return None
    caption = (
        "Area between a judge's distribution and people's, in grades; 0 where they are the same. On few answers a "
        "difference between judges is told too small."
    )
    head = tag("tr", [tag("th", name, scope="col") for name in ("", "Area", "95 % interval", "n", "")])
    return tag("table", tag("caption", caption), tag("thead", head), tag("tbody", rows), class_="plain")


def _area_row(name: str, figure: Measured) -> Markup:
    verdict = ""
    if " - " in name and known(figure.low) and known(figure.high):
        verdict = "noise: the interval has 0 in it" if figure.low <= 0 <= figure.high else "more than noise"
    cells = [tag("td", text, class_="n") for text in (number(figure.value), _interval(figure), str(figure.n))]
    return tag("tr", tag("th", name.replace(" - ", " less "), scope="row"), *cells, tag("td", verdict))


def _means(found: Summary) -> Markup:
    columns = sorted(found.dimensions, key=lambda name: name not in SAID)  # what is looked for first needs no scrolling
    names = [found.names.get(name, SAID.get(name, name)) for name in columns]
    head = tag("tr", tag("th", "Category", scope="col"), [tag("th", escape(n, LONGEST), scope="col") for n in names])
    rows = [
        tag(
            "tr",
            tag("th", "All" if category == ALL else escape(category, LONGEST), scope="row"),
            [_cell(found.mean(category, dimension)) for dimension in columns],
            class_="chosen" if category == ALL else None,
        )
        for category in found.categories
    ]
    caption = (
        "Mean grade, its 95 % bootstrap interval over questions, and how many grades it rests on. Each interval holds "
        "by itself: of many means some stand out by chance."
    )
    made = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", rows))
    return tag("div", made, class_="wide")


def _cell(figure: Measured | None) -> Markup:
    if figure is None or not known(figure.value):
        return tag("td", "–", class_="undefined")
    return tag("td", number(figure.value), tag("small", _interval(figure)), tag("small", f"n = {figure.n}"), class_="n")


def _interval(figure: Measured) -> str:
    if not (known(figure.low) and known(figure.high)):
        return "too few"
    return f"{number(figure.low)} to {number(figure.high)}"


def _left_out(found: Summary) -> Markup:
    facts = [f"{count(n, 'case')}: {name.replace('_', ' ')}" for name, n in found.outcomes.items() if name != "graded"]
    flags = [f"{count(n, 'case')} flagged: {name}" for name, n in found.flags.items()]
    if not [*facts, *flags]:
        return tag("p", "Nothing.", class_="note")
    note = "A grade that is missing counts for nothing; it is never taken for a low one."
    return join([tag("ul", [tag("li", text) for text in [*facts, *flags]]), tag("p", note, class_="note")])


def _foot(judge: str, run: str) -> Markup:
    facts = [(name, value) for name, value in (("judge", judge), ("run", run)) if value]
    return tag("footer", tag("dl", [tag("div", tag("dt", n), tag("dd", escape(v, LONGEST))) for n, v in facts]))
