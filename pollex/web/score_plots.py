"""The report's plots of scores: distributions, precision curves, probabilities; and the table of α."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pollex.rubrics.guarantee import in_words
from pollex.rubrics.records import AlphaRow, WindowRecord
from pollex.rubrics.rubric_set import RubricSet
from pollex.selection.platt import Calibration
from pollex.web.charts import (
    distribution,
    ends,
    most_in_a_bar,
    precision_curves,
    probability_curve,
    reliability,
    score_edges,
)
from pollex.web.markup import Markup, tag
from pollex.web.material import Scores
from pollex.web.reliability import bins_of, brier
from pollex.web.words import SPACE, count, number, percent

TOO_FEW = 10
"""Fewer conversations than this say nothing about probabilities."""

Sides = Mapping[str, Scores]
"""The scores by name of the side, in the order in which they are shown."""


def distributions(rubrics: RubricSet, sides: Sides) -> Markup:
    """How the scores of both classes lie, around θ and the window."""
    edges = score_edges(rubrics, sides.values())
    most = most_in_a_bar(list(sides.values()), edges)

    def draw(name: str, scores: Scores) -> Markup | str:
        title = f"{name}: histogram of NetSAT, {_classes(scores)}, θ at {number(rubrics.theta, 1)}"
        return distribution(title, scores, rubrics, edges, most)

    return _panels(sides, draw) + tag("p", window_in_words(rubrics.window), class_="note") + _guarantee(rubrics)


def _guarantee(rubrics: RubricSet) -> Markup:
    if rubrics.guaranteed is None:
        return Markup("")
    said = in_words(rubrics.guaranteed).replace(" %", f"{SPACE}%")
    return tag("p", f"With a guarantee: {said}", class_="note")


def precisions(rubrics: RubricSet, sides: Sides) -> Markup:
    """Both precision curves of both sides, with what selection holds them against."""
    xs = ends(score_edges(rubrics, sides.values()))

    def draw(name: str, scores: Scores) -> Markup | str:
        if not scores.both_classes:
            return "Precision curves need conversations of both labels."
        return precision_curves(f"{name}: Prec+ and Prec− against the threshold on NetSAT", scores, rubrics, xs)

    key = tag(
        "p",
        *(tag("span", tag("span", class_=f"swatch {class_}"), name, class_="entry") for class_, name in CURVES),
        class_="legend",
    )
    return key + _panels(sides, draw)


CURVES = [
    ("positive", "Prec+: positive, of those over the threshold"),
    ("negative", "Prec−: negative, of those at or under it"),
    ("target", "the tanh curves that selection aims at"),
    ("reference", "the precision that the window promises"),
    ("window", "uncertainty window"),
]


def probabilities(rubrics: RubricSet, sides: Sides) -> Markup:
    """Whether probabilities come true on held-out conversations, and the curve that they come from."""
    name, scores = list(sides.items())[-1]
    calibration = Calibration(**rubrics.calibration.model_dump())
    xs = ends(score_edges(rubrics, sides.values()))
    title = f"Probability of positive against NetSAT; strokes are the {name.lower()} conversations"
    curve = panel(f"From NetSAT to a probability ({name.lower()})", probability_curve(title, scores, calibration, xs))
    return tag("div", _reliability_panel(rubrics, sides, calibration), curve, class_="panels")


def _reliability_panel(rubrics: RubricSet, sides: Sides, calibration: Calibration) -> Markup:
    name = "Do the probabilities come true? (held out)"
    if rubrics.held_out is None:
        return panel(name, "Nothing was held out, so this can't be known.")
    scores = list(sides.values())[-1]
    if (n := len(scores.netsat)) < TOO_FEW:
        return panel(name, f"{count(n, 'scored conversation')}: too few to say.")
    predicted = calibration.probability(scores.netsat)
    bins = bins_of(predicted, scores.positive, scores.together)
    base = brier(scores.positive.mean().repeat(n), scores.positive)
    note = (
        f"{count(n, 'conversation')} in {count(len(bins), 'bin')} of about {round(n / len(bins))}, with "
        f"95\N{NO-BREAK SPACE}% intervals. Mean squared error (Brier) {number(brier(predicted, scores.positive), 3)}; "
        f"the base rate alone has {number(base, 3)}."
    )
    drawing = reliability(f"Observed share of positive against predicted probability, {n} conversations", bins)
    return panel(name, drawing, note)


def _panels(sides: Sides, draw: Callable[[str, Scores], Markup | str]) -> Markup:
    return tag("div", [panel(name, _drawn(name, scores, draw)) for name, scores in sides.items()], class_="panels")


def _drawn(name: str, scores: Scores, draw: Callable[[str, Scores], Markup | str]) -> Markup | str:
    return draw(name, scores) if len(scores.netsat) else "No conversation of this side has a score."


def panel(name: str, content: Markup | str, note: str = "") -> Markup:
    """A drawing under its name, or why there is none."""
    inside = content if isinstance(content, Markup) else tag("p", content, class_="empty")
    return tag("figure", tag("figcaption", name), inside, tag("p", note, class_="note") if note else None)


def _classes(scores: Scores) -> str:
    return f"{int(scores.positive.sum())} positive and {int((~scores.positive).sum())} negative conversations"


def window_in_words(window: WindowRecord) -> str:
    """What the window promises, in plain words."""
    precision = percent(window.precision)
    if window.lower is None and window.upper is None:
        return f"No threshold is right {precision} of the time on the training conversations: every score is uncertain."
    if window.lower is None:
        return f"A score over {number(window.upper, 1)} is confidently positive; none is confidently negative."
    if window.upper is None:
        return f"A score of at most {number(window.lower, 1)} is confidently negative; none is confidently positive."
    return (
        f"The shaded window runs from {number(window.lower, 1)} to {number(window.upper, 1)}. On the training "
        f"conversations, scores outside it are labelled right at least {precision} of the time."
    )


def alphas_table(rubrics: RubricSet) -> Markup:
    """Cross-validated AUC of each α, the chosen one marked."""
    if not rubrics.alphas:
        return tag("p", "α was given, or there was nothing to cross-validate on.")
    head = [tag("th", name, scope="col") for name in ("α", "Mean AUC", "Deviation", "Folds", "")]
    caption = (
        "These figures flatter: the best is so in part by chance, and rubrics that were learnt here were written from "
        "all of these conversations."
    )
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", head)),
        tag("tbody", [_alpha_row(row, chosen=row.alpha == rubrics.alpha) for row in rubrics.alphas]),
        class_="plain",
    )


def _alpha_row(row: AlphaRow, *, chosen: bool) -> Markup:
    deviation = "one fold" if row.deviation is None else number(row.deviation, 3)
    return tag(
        "tr",
        tag("th", f"{row.alpha:g}", scope="row"),
        tag("td", number(row.mean_auc, 3), class_="n"),
        tag("td", deviation, class_="n"),
        tag("td", str(row.folds), class_="n"),
        tag("td", "chosen" if chosen else "", class_="chosen"),
        class_="chosen" if chosen else None,
    )
