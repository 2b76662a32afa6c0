"""Tables of the page about a calibrator: models side by side, subgroups, judges, gains and leverage, faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pollex.calibration.intervals import Measured
from pollex.calibration.leverage import Leverage
from pollex.calibration.measures import Assessment
from pollex.calibration.tables.faults import Fault
from pollex.web.calibration_charts import span_of, spark, spark_scale
from pollex.web.calibration_material import CalibrationMaterial, ComparedModel, QuestionGain, ResponseCurve
from pollex.web.markup import Child, Markup, escape, tag
from pollex.web.plots import Scale
from pollex.web.words import known, number

NAME = 120
LONG = 600

MEASURES = [("log_loss", "Log-loss"), ("rmse", "RMSE"), ("pearson", "Pearson"), ("spearman", "Spearman")]
"""Field of `Assessment` and name."""


def compared_table(models: Sequence[ComparedModel]) -> Markup:
    """Each model's figures with their intervals, and how far its log-loss is behind."""
    behind = [(m.behind.value, m.behind.low, m.behind.high) for m in models if m.behind is not None]
    scale = span_of(behind)
    columns: list[Child] = ["Model", *(name for _, name in MEASURES), "smECE", "Behind"]
    rows = [_model_row(model, own=place == 0) for place, model in enumerate(models)]
    drawn = [tag("td", _behind(model, scale), class_="drawn") for model in models]
    body = [tag("tr", *cells, cell, class_="own" if place == 0 else None) for place, (cells, cell) in enumerate(
        zip(rows, drawn, strict=True)
    )]  # fmt: skip
    head = [*columns, tag("span", "Log-loss behind", spark_scale(scale), class_="stack")]
    caption = (
        "Held-out figures with 95\N{NO-BREAK SPACE}% intervals over texts. Behind: log-loss less the calibrator's on "
        "the same judgments; an interval that includes 0 leaves open which is better."
    )
    return tag("table", tag("caption", caption), table_head(head), tag("tbody", body), class_="compared")


def _behind(model: ComparedModel, scale: Scale) -> Markup | None:
    gap = model.behind
    return None if gap is None else spark(model.title, gap.value, gap.low, gap.high, scale)


def _model_row(model: ComparedModel, *, own: bool) -> list[Markup]:
    name = tag("th", escape(model.title, NAME), tag("small", "the calibrator") if own else None, scope="row")
    if model.assessment is None:
        why = tag("td", escape(f"not fitted: {model.why_not}", LONG), class_="undefined", colspan=float(6))
        return [name, why]
    figures = [getattr(model.assessment, field) for field, _ in MEASURES]
    return [
        name,
        *(figure_cell(figure) for figure in figures),
        figure_cell(model.assessment.smece, bare=not own),
        tag("td") if model.behind is None else figure_cell(model.behind, signed=True),
    ]


def figure_cell(figure: Measured, digits: int = 3, *, signed: bool = False, bare: bool = False) -> Markup:
    """A figure with its interval below unless it is to be bare, or why there is none."""
    if not known(figure.value):
        return tag("td", tag("span", escape(figure.undefined or "undefined", LONG), class_="undefined"))
    bounds = None if bare else tag("small", interval(figure, digits))
    return tag("td", number(figure.value, digits, signed=signed), bounds, class_="n")


def interval(figure: Measured | Leverage, digits: int = 3) -> str:
    """The 95 % interval, or that there is none."""
    if not (known(figure.low) and known(figure.high)):
        return "no interval"
    return f"{number(figure.low, digits)} to {number(figure.high, digits)}"


def table_head(names: Iterable[Child]) -> Markup:
    """The first row."""
    return tag("thead", tag("tr", [tag("th", name, scope="col") for name in names]))


def subgroups_table(column: str, groups: Mapping[str, Assessment]) -> Markup:
    """Figures of each group of one column."""
    rows = [
        tag(
            "tr",
            tag("th", escape(name, NAME), tag("small", f"{each.n} judgments, {each.texts} texts"), scope="row"),
            *(figure_cell(getattr(each, field)) for field, _ in MEASURES),
        )
        for name, each in groups.items()
    ]
    head = table_head([escape(column, NAME), *(name for _, name in MEASURES)])
    return tag("table", head, tag("tbody", rows), class_="plain")


def judges_table(curves: Sequence[ResponseCurve]) -> Markup:
    """What each judge gave and how far the curve rises."""
    rows = [
        tag(
            "tr",
            tag("th", "somebody unknown" if curve.judge is None else escape(curve.judge, NAME), scope="row"),
            tag("td", f"{curve.labels:,}", class_="n"),
            tag("td", number(curve.given), class_="n"),
            tag("td", number(curve.predicted[0]), class_="n"),
            tag("td", number(curve.predicted[-1]), class_="n"),
        )
        for curve in curves
    ]
    head = table_head(["Judge", "Labels", "Mean given", "Predicted, LLM lowest", "Predicted, LLM highest"])
    table = tag("table", head, tag("tbody", rows), class_="plain")
    return tag("details", tag("summary", "The judges, as a table"), table)


def gains_table(gains: Sequence[QuestionGain]) -> Markup:
    """By how much the log-loss rises without each question."""
    scale = span_of([(each.gain.value, each.gain.low, each.gain.high) for each in gains])
    rows = [
        tag(
            "tr",
            tag("th", escape(each.question, NAME), scope="row"),
            tag("td", spark(each.question, each.gain.value, each.gain.low, each.gain.high, scale), class_="drawn"),
            figure_cell(each.gain, 4, signed=True),
            tag("td", _gain_in_words(each.gain)),
        )
        for each in gains
    ]
    head = table_head(["Question", tag("span", "Log-loss", spark_scale(scale), class_="stack"), "Rises by", ""])
    return tag("table", head, tag("tbody", rows), class_="plain")


def _gain_in_words(gain: Measured) -> str:
    if not (known(gain.low) and known(gain.high)):
        return ""
    return "helps" if gain.low > 0 else "harms" if gain.high < 0 else "can't be told from noise"


def leverage_table(leverages: Sequence[Leverage]) -> Markup:
    """By how much the main answer would rise for a unit gained on each question."""
    scale = span_of([(each.mean, each.low, each.high) for each in leverages])
    head = table_head(
        [
            "Question",
            tag("span", "Leverage", spark_scale(scale), class_="stack"),
            "Mean over texts",
            "Spread over texts",
        ]
    )
    return tag("table", head, tag("tbody", [_leverage_row(each, scale) for each in leverages]), class_="plain")


def _leverage_row(each: Leverage, scale: Scale) -> Markup:
    name = tag("th", escape(each.question, NAME), scope="row")
    if each.mean is None:
        return tag("tr", name, tag("td", escape(each.undefined, LONG), class_="undefined", colspan=float(3)))
    return tag(
        "tr",
        name,
        tag("td", spark(each.question, each.mean, each.low, each.high, scale), class_="drawn"),
        tag("td", number(each.mean, signed=True), tag("small", interval(each, 2)), class_="n"),
        tag("td", number(each.spread), class_="n"),
    )


def faults_list(faults: Sequence[Fault]) -> Markup:
    """What was left out, and what else is worth knowing."""
    if not faults:
        return tag("p", "Nothing was left out.")
    return tag("div", [_fault(each) for each in faults])


def _fault(fault: Fault) -> Markup:
    kind = "left out: " if fault.left_out else "kept: "
    return tag(
        "details",
        tag("summary", kind, tag("b", f"{fault.count:,}"), " ", escape(fault.what, LONG)),
        tag("p", "What to do: ", escape(fault.remedy, LONG)) if fault.remedy else None,
        tag("ul", [tag("li", tag("code", escape(place, LONG))) for place in fault.examples], class_="places"),
    )


def choice_list(material: CalibrationMaterial) -> Markup:
    """What was chosen, as the calibrator tells it."""
    if not material.choice:
        return tag("p", f"Nothing was chosen: the model was named, {material.title}.")
    return tag("pre", tag("code", escape("\n".join(material.choice), 20 * LONG)))
