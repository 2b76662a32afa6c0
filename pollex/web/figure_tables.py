"""The report's tables of figures: both sides with their intervals, and what something simpler reaches."""

from __future__ import annotations

from pollex.rubrics.records import Figure, Figures
from pollex.rubrics.rubric_set import RubricSet
from pollex.web.charts import spark_axis, whiskers
from pollex.web.headline import CHANCE
from pollex.web.markup import Child, Markup, join, table_head, tag
from pollex.web.words import interval, known, number

METRICS = [
    ("auc", "AUC", "how often a positive conversation scores over a negative one", CHANCE),
    ("accuracy", "Accuracy", "labelled right at θ", None),
    ("precision", "Precision", "positive, of those labelled positive", None),
    ("recall", "Recall", "labelled positive, of the positive ones", None),
    ("f1", "F1", "precision and recall in one", None),
    ("yield_at_90", "Yield", "outside the uncertainty window", None),
    ("confident_accuracy", "Accuracy when confident", "labelled right, of those outside the window", None),
]
"""Field of `Figures`, name, what it means, and what chance reaches."""


def figures_table(rubrics: RubricSet) -> Markup:
    """Every metric on both sides with its interval, drawn and written, and the optimism between them."""
    held_out = rubrics.held_out
    rows = [_metric_row(rubrics, *metric) for metric in METRICS]
    gap = _difference_row(rubrics)
    columns = ["Training", "Held out", "Optimism"] if held_out else ["Training"]
    return tag(
        "table",
        tag("caption", _key(bool(held_out))),
        table_head(["Figure", tag("span", "Side by side", spark_axis(), class_="stack"), *columns]),
        tag("tbody", rows, gap),
        class_="figures",
    )


def _key(held_out: bool) -> Markup:
    ring, disc = tag("span", class_="key training"), tag("span", class_="key held-out")
    lines = "lines are 95\N{NO-BREAK SPACE}% intervals."
    if not held_out:
        return join([ring, " training; ", lines])
    return join([ring, " training, ", disc, " held out; ", lines, " Optimism is training less held out."])


def _metric_row(rubrics: RubricSet, field: str, name: str, meaning: str, chance: float | None) -> Markup:
    training: Figure = getattr(rubrics.training, field)
    held_out: Figure | None = getattr(rubrics.held_out, field) if rubrics.held_out else None
    return tag(
        "tr",
        _named(name, meaning),
        tag("td", whiskers(name, training, held_out, chance), class_="drawn"),
        *_both(training, held_out, 2),
    )


def _named(name: str, meaning: str) -> Markup:
    return tag("th", name, tag("small", meaning), scope="row")


def _difference_row(rubrics: RubricSet) -> Markup:
    held_out = rubrics.held_out.delta_netsat if rubrics.held_out else None
    meaning = "mean NetSAT of positive less that of negative ones"
    return tag(
        "tr", _named("ΔNetSAT", meaning), tag("td", class_="drawn"), *_both(rubrics.training.delta_netsat, held_out, 1)
    )


def _both(training: Figure, held_out: Figure | None, digits: int) -> list[Markup]:
    cells = [_cell(training, digits, "Training")]
    if held_out:
        cells += [_cell(held_out, digits, "Held out"), _optimism(training, held_out, digits)]
    return cells


def _cell(figure: Figure, digits: int, column: str) -> Markup:
    if not known(figure.value):
        return tag("td", tag("span", interval(figure), class_="undefined"), data_column=column)
    return tag(
        "td", number(figure.value, digits), tag("small", interval(figure, digits)), data_column=column, class_="n"
    )


def _optimism(training: Figure, held_out: Figure, digits: int) -> Markup:
    if not (known(training.value) and known(held_out.value)):
        return tag("td", tag("span", "undefined", class_="undefined"), data_column="Optimism")
    return tag("td", number(training.value - held_out.value, digits, signed=True), data_column="Optimism", class_="n")


def baselines_table(rubrics: RubricSet) -> Markup:
    """What something simpler reaches, by AUC on the same split, and how far the rubrics are ahead."""
    if not rubrics.baselines:
        return tag("p", "No baseline was measured.")
    rows = [_baseline_row("The rubrics", rubrics.training, rubrics.held_out, None)]
    rows += [_baseline_row(b.name, b.training, b.held_out, b.advantage) for b in rubrics.baselines]
    columns = ["AUC, training", "AUC, held out", "Rubrics ahead by"]
    return tag(
        "table",
        tag(
            "caption",
            "AUC; the dotted line is chance, which a constant reaches. An advantage whose interval includes 0 is open.",
        ),
        table_head(["Ranked by", tag("span", "Side by side", spark_axis(), class_="stack"), *columns]),
        tag("tbody", rows),
        class_="figures",
    )


def _baseline_row(name: str, training: Figures | None, held_out: Figures | None, gain: Figure | None) -> Markup:
    sides = training.auc if training else None, held_out.auc if held_out else None
    cells = [
        _cell(side, 2, column) if side else tag("td", "not measured", class_="undefined", data_column=column)
        for side, column in zip(sides, ("Training", "Held out"), strict=True)
    ]
    return tag(
        "tr",
        tag("th", name, scope="row"),
        tag("td", whiskers(name, *sides, CHANCE), class_="drawn"),
        *cells,
        tag("td", *_advantage(gain), data_column="Ahead by", class_="n"),
    )


def _advantage(gain: Figure | None) -> list[Child]:
    if gain is None:
        return []
    if not known(gain.value):
        return [tag("span", interval(gain), class_="undefined")]
    return [number(gain.value, 2, signed=True), tag("small", interval(gain))]
