"""The report's first part: what was learnt, how well it does, and how far that can be trusted."""

from __future__ import annotations

from collections.abc import Iterator

from pollex.graphs.rubric_set import Baseline, Figure, Figures, RubricSet
from pollex.web.charts import spark_axis, whiskers
from pollex.web.markup import Child, Markup, join, tag
from pollex.web.words import count, interval, known, listed, number, percent, percent_interval, points

CHANCE = 0.5

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


def headline(rubrics: RubricSet) -> Markup:
    """Title, what it was learnt from and by whom, the verdict, and what to be careful about."""
    return tag(
        "header",
        tag("p", "pollex report", class_="eyebrow"),
        tag("h1", "What makes a conversation good, and what makes it bad"),
        tag("p", verdict(rubrics), class_="verdict"),
        tag("p", _learnt_from(rubrics), class_="lede"),
        tag("p", worker(rubrics), class_="lede"),
        _list([*cautions(rubrics), *rubrics.notes], "cautions"),
    )


def verdict(rubrics: RubricSet) -> str:
    """How well the rubrics rank, in one sentence."""
    held_out, auc = rubrics.held_out, (rubrics.held_out or rubrics.training).auc
    where = f"{held_out.n:,} held-out" if held_out else f"the {rubrics.training.n:,}"
    where = f"On {where} {'conversation' if auc.n == 1 else 'conversations'}"
    if not held_out:
        where += " that they were learnt from"
    if not known(auc.value):
        return f"{where}, how well the rubrics rank could not be measured: {auc.undefined or 'there is no figure'}."
    return (
        f"{where}, the rubrics rank a positive one over a negative one {percent(auc.value)} of the time "
        f"({percent_interval(auc)}); chance is {percent(CHANCE)}."
        + ("" if held_out else " That flatters them, and as nothing was held out nobody knows by how much.")
    )


def _learnt_from(rubrics: RubricSet) -> str:
    kinds = [sum(rubric.polarity == kind for rubric in rubrics.rubrics) for kind in ("sat", "dsat")]
    data, training = rubrics.data, rubrics.training
    tested = (
        "nothing was held out"
        if rubrics.held_out is None
        else f"tested on {data.held_out:,} others ({_classes(rubrics.held_out)})"
    )
    return (
        f"{count(len(rubrics.rubrics), 'rubric')}, {kinds[0]} of satisfaction and {kinds[1]} of dissatisfaction, "
        f"learnt from {count(data.training, 'conversation')} ({_classes(training)}); {tested}. "
        f"The domain: {rubrics.domain.assistant.rstrip('.')}."
    )


def _classes(figures: Figures) -> str:
    return f"{figures.positives:,} positive, {figures.negatives:,} negative"


def worker(rubrics: RubricSet) -> str:
    """Who did the work, by name."""
    names = dict.fromkeys([*rubrics.roles.values(), rubrics.judge.name])
    if rubrics.judge.kind == "embedded" and all(name.startswith("embedded") for name in names):
        return (
            "Who did the work: embedded. No LLM was used; pollex's own small language model and signals read, "
            "wrote and judged, on this machine."
        )
    by_name = {name: [role for role, who in rubrics.roles.items() if who == name] for name in names}
    work = [f"{name} ({listed(roles)})" if roles else name for name, roles in by_name.items()]
    return f"Who did the work: {listed(work)}; the rubrics were judged by {rubrics.judge.name}."


def cautions(rubrics: RubricSet) -> Iterator[str]:
    """What the figures don't show."""
    if rubrics.edited:
        yield "Rubrics were edited after θ was fitted: fit it again (pollex refit) before scoring."
    if rubrics.held_out is None:
        return
    auc = rubrics.held_out.auc
    if known(auc.low) and auc.low <= CHANCE:
        yield "The interval includes chance: on these conversations the rubrics can't be told from guessing."
    yield from (said for said in map(_comparison, rubrics.baselines) if said)


def _comparison(baseline: Baseline) -> str:
    gain = baseline.advantage
    if gain is None or baseline.name == "constant" or not (known(gain.low) and known(gain.high)):
        return ""
    by = f"{points(gain.value)} points, 95\N{NO-BREAK SPACE}% interval {points(gain.low)} to {points(gain.high)}"
    if gain.low > 0:
        return f"The rubrics rank better than {baseline.name} ({by})."
    if gain.high < 0:
        return f"{baseline.name} ranks better than the rubrics ({by})."
    return f"Whether the rubrics rank better than {baseline.name} is open ({by}): the interval includes no difference."


def _list(items: list[str], class_: str) -> Markup | None:
    return tag("ul", [tag("li", item) for item in items], class_=class_) if items else None


def figures_table(rubrics: RubricSet) -> Markup:
    """Every metric on both sides with its interval, drawn and written, and the optimism between them."""
    held_out = rubrics.held_out
    rows = [_metric_row(rubrics, *metric) for metric in METRICS]
    gap = _difference_row(rubrics)
    columns = ["Training", "Held out", "Optimism"] if held_out else ["Training"]
    return tag(
        "table",
        tag("caption", _key(bool(held_out))),
        _head(["Figure", tag("span", "Drawn", spark_axis(), class_="stack"), *columns]),
        tag("tbody", rows, gap),
        class_="figures",
    )


def _key(held_out: bool) -> Markup:
    ring, disc = tag("span", class_="key training"), tag("span", class_="key held-out")
    parts: list[Child] = [ring, " training"]
    if held_out:
        parts += ["  ", disc, " held out"]
    return join([*parts, "; lines are 95\N{NO-BREAK SPACE}% intervals. Optimism is training less held out."])


def _head(names: list[Child]) -> Markup:
    return tag("thead", tag("tr", [tag("th", name, scope="col") for name in names]))


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
        tag("caption", "AUC; the dotted line is chance. An advantage whose interval includes 0 is open."),
        _head(["Ranked by", tag("span", "Drawn", spark_axis(), class_="stack"), *columns]),
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
