"""Tables of the page about a calibrator: models side by side, subgroups, judges, gains and leverage, faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pollex.calibration.leverage import Leverage
from pollex.calibration.model_choice import names_of
from pollex.formats.columns import Fault
from pollex.measures.distributions import Assessment
from pollex.measures.intervals import Measured
from pollex.text import printable
from pollex.web.calibration_charts import span_of, spark, spark_scale
from pollex.web.calibration_material import CalibrationMaterial, ComparedModel, QuestionGain, ResponseCurve
from pollex.web.markup import Child, Markup, escape, join, table_head, tag
from pollex.web.plots import Scale
from pollex.web.words import count, known, listed, number

NAME = 120
LONG = 600

MEASURES = [("log_loss", "Log-loss"), ("rmse", "RMSE"), ("pearson", "Pearson"), ("spearman", "Spearman")]
"""Field of `Assessment` and name."""


def compared_table(models: Sequence[ComparedModel]) -> Markup:
    """Each model's figures with their intervals, and how far its log-loss is behind."""
    scale = span_of([(m.behind.value, m.behind.low, m.behind.high) for m in models if m.behind is not None])
    names: list[Child] = ["Model", *(name for _, name in MEASURES), "smECE"]
    head = table_head([*names, tag("span", "Log-loss behind", spark_scale(scale), class_="stack")])
    rows = [_model_row(model, scale, own=place == 0) for place, model in enumerate(models)]
    caption = (
        "Held-out figures with 95\N{NO-BREAK SPACE}% intervals over texts. Behind: log-loss less the calibrator's on "
        "the same judgments; an interval that includes 0 leaves open which is better."
    )
    return tag("table", tag("caption", caption, _spared(models)), head, tag("tbody", rows), class_="figures compared")


def _spared(models: Sequence[ComparedModel]) -> str | None:
    """Why the calibrator alone has an interval of smECE, where it alone has one."""
    own, *others = (model.assessment.smece for model in models if model.assessment is not None)
    if not known(own.low) or not any(known(each.value) and not known(each.low) for each in others):
        return None
    return " With so many answers those of the others' smECE would take minutes, and are left out."


def _model_row(model: ComparedModel, scale: Scale, *, own: bool) -> Markup:
    name = tag("th", escape(model.title, NAME), tag("small", "this calibrator") if own else None, scope="row")
    if model.assessment is None:
        why = escape(f"not fitted: {model.why_not}", LONG)
        return tag("tr", name, tag("td", why, class_="undefined", colspan=float(len(MEASURES) + 2)))
    figures = [(title, getattr(model.assessment, field)) for field, title in MEASURES]
    cells = [figure_cell(figure, column=title) for title, figure in figures]
    error = figure_cell(model.assessment.smece, column="smECE")
    return tag("tr", name, *cells, error, _behind(model, scale), class_="own" if own else None)


def _behind(model: ComparedModel, scale: Scale) -> Markup:
    gap = model.behind
    if gap is None:
        return tag("td", class_="drawn")
    if not known(gap.value):
        return tag("td", tag("span", escape(gap.undefined, LONG), class_="undefined"), data_column="Log-loss behind")
    drawing = spark(model.title, gap.value, gap.low, gap.high, scale)
    said = f"{number(gap.value, 3, signed=True)} ({interval(gap)})"
    return tag("td", drawing, tag("small", said), data_column="Log-loss behind", class_="drawn")


def figure_cell(figure: Measured, digits: int = 3, *, signed: bool = False, column: str | None = None) -> Markup:
    """A figure with its interval below, or why there is none."""
    if not known(figure.value):
        why = tag("span", escape(figure.undefined or "undefined", LONG), class_="undefined")
        return tag("td", why, data_column=column)
    bounds = tag("small", interval(figure, digits))
    return tag("td", number(figure.value, digits, signed=signed), bounds, data_column=column, class_="n")


def interval(figure: Measured | Leverage, digits: int = 3) -> str:
    """The 95 % interval, or that there is none."""
    if not (known(figure.low) and known(figure.high)):
        return "no interval"
    return f"{number(figure.low, digits)} to {number(figure.high, digits)}"


def subgroups_table(column: str, groups: Mapping[str, Assessment]) -> Markup:
    """Figures of each group of one column."""
    rows = [
        tag(
            "tr",
            tag(
                "th",
                escape(name, NAME),
                tag("small", f"{count(each.n, 'judgment')}, {count(each.texts, 'text')}"),
                scope="row",
            ),
            *(figure_cell(getattr(each, field)) for field, _ in MEASURES),
        )
        for name, each in groups.items()
    ]
    head = table_head([escape(column, NAME), *(name for _, name in MEASURES)])
    return tag("table", head, tag("tbody", rows), class_="plain left")


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
    table = tag("table", head, tag("tbody", rows), class_="plain left")
    return tag("details", tag("summary", "The judges, as a table"), table)


def gains_table(gains: Sequence[QuestionGain]) -> Markup:
    """By how much the log-loss rises without each question."""
    scale = span_of([(each.gain.value, each.gain.low, each.gain.high) for each in gains])
    rows = [
        tag(
            "tr",
            tag("th", escape(each.question, NAME), scope="row"),
            tag(
                "td",
                spark(each.question, each.gain.value, each.gain.low, each.gain.high, scale),
                tag("small", _gain_in_words(each.gain)),
                class_="drawn",
            ),
            figure_cell(each.gain, 4, signed=True),
        )
        for each in gains
    ]
    head = table_head(["Question", tag("span", "Log-loss", spark_scale(scale), class_="stack"), "Rises by"])
    return tag("table", head, tag("tbody", rows), class_="plain left")


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
    return tag("table", head, tag("tbody", [_leverage_row(each, scale) for each in leverages]), class_="plain left")


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
        tag("summary", kind, tag("b", f"{fault.count:,}"), " ", escape(fault.said, LONG)),
        tag("p", "What to do: ", escape(fault.remedy, LONG)) if fault.remedy else None,
        tag("ul", [tag("li", tag("code", escape(place, LONG))) for place in fault.examples], class_="places"),
    )


def choice_table(material: CalibrationMaterial) -> Markup:
    """All candidates from the best on, as they did when the kept calibrator was fitted; one line for each refusal."""
    choice = material.choice
    if choice is None:
        return tag("p", f"Nothing was chosen: the model was named, {printable(material.title, NAME)}.")
    taken = [choice.trials[place] for place in choice.weights]
    rows = [
        tag(
            "tr",
            tag("th", escape(trial.name, NAME), scope="row"),
            tag("td", number(trial.loss, 3), class_="n"),
            tag("td", number(trial.behind, 3) if trial.behind is not None else None, class_="n"),
            tag("td", number(trial.behind_error, 3) if trial.behind_error is not None else None, class_="n"),
            class_="chosen" if trial in taken else None,
        )
        for trial in choice.ranking()
        if trial.loss is not None
    ]
    refused = [
        tag(
            "tr",
            tag("th", escape(names_of(trials), NAME), scope="row"),
            tag("td", escape(why, LONG), class_="undefined", colspan=float(3)),
        )
        for why, trials in choice.refusals().items()
    ]
    head = table_head(["Candidate", "Log-loss", "Behind the best", "± standard error of that"])
    members = [f"{choice.trials[place].name} ({number(share)})" for place, share in choice.weights.items()]
    note = tag("p", f"Together, with these weights: {listed(members)}.", class_="note") if len(members) > 1 else None
    table = tag("table", head, tag("tbody", [*rows, *refused]), class_="plain left")
    return join([note, tag("div", table, class_="wide")])
