"""The page about a calibrator: one HTML file that needs nothing else, without a script and without a web address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollex.measures.distributions import Assessment
from pollex.measures.intervals import FEWEST, Measured
from pollex.text import printable
from pollex.web.calibration_charts import learning_chart, reliability_chart, response_chart
from pollex.web.calibration_material import CalibrationMaterial
from pollex.web.calibration_tables import (
    LONG,
    NAME,
    choice_table,
    compared_table,
    faults_list,
    gains_table,
    interval,
    judges_table,
    leverage_table,
    subgroups_table,
)
from pollex.web.markup import Markup, escape, join, tag
from pollex.web.page import Section, section, whole_page
from pollex.web.words import count, known, number

SHORT = 8
"""Rows of a table that is open from the start."""

LEVEL = "95\N{NO-BREAK SPACE}% interval"

GLOSSARY = [
    (
        "Cross-fitted",
        "Every text is predicted by a model that was fitted without it. The figures are of such predictions.",
    ),
    (
        LEVEL,
        "Where the figure would mostly lie with other texts of the same kind, each with all its judgments. Each "
        "interval holds by itself: of twenty one misses on average, so of many questions, judges or groups some stand "
        "out by chance. How much the models would differ with other labels is not in it, and among few judgments a "
        f"rare surprise may not have been seen yet. It is left out where fewer than {FEWEST} texts stand behind the "
        "figure.",
    ),
    (
        "Log-loss",
        "How surprised the prediction is by the given answers, in nats; 0 is perfect. It judges whole distributions.",
    ),
    ("RMSE", "Root of the mean squared distance of the expected answer from the given one."),
    ("Pearson, Spearman", "Correlation of the expected answer with the given one; of values, of ranks."),
    (
        "smECE",
        "How far predicted probabilities are from what comes true, smoothed, mean over the answers. A constant has "
        "about 0: read it beside the log-loss. Noise drives it up, in a resample more so; its interval is mirrored to "
        "make up for that, but always holds the value. An interval above 0 does not prove that predictions are off.",
    ),
    (
        "Leverage",
        "How much the expected main answer would rise if a question's answer rose by a unit, along the model's "
        "gradient. It describes the model; whether a change of the texts would cause it is another matter.",
    ),
]


def render_calibration(material: CalibrationMaterial) -> str:
    """The whole page as HTML, the same for the same material. Write it as UTF-8."""
    parts = list(_sections(material))
    contents = tag("nav", tag("ul", [tag("li", tag("a", part.title, href=f"#{part.id}")) for part in parts]),
                   aria_label="On this page")  # fmt: skip
    main = tag("main", [section(part) for part in parts], class_="calibration")
    body = [headline(material), contents, main, _colophon(material)]
    return whole_page("pollex: what the answers mean", body, "calibration.css")


def headline(material: CalibrationMaterial) -> Markup:
    """Title, the verdict, and what to be careful about."""
    return tag(
        "header",
        tag("p", "pollex calibration report", class_="eyebrow"),
        tag("h1", f"What the answers say about {printable(material.main, NAME)}"),
        tag(
            "div",
            tag(
                "div",
                tag("p", _verdict(material), class_="verdict"),
                tag("p", _about(material), class_="lede"),
                tag("ul", [tag("li", said) for said in _cautions(material)], class_="cautions"),
            ),
            _tiles(material),
            class_="opening",
        ),
    )


def _verdict(material: CalibrationMaterial) -> str:
    loss = material.own.log_loss
    where = f"On {count(material.labels, 'label')} of {count(material.texts, 'text')}, held out in turn"
    if not known(loss.value):
        return f"{where}, the log-loss of the predictions is undefined: {loss.undefined}."
    return f"{where}, the predictions have a log-loss of {number(loss.value, 3)} ({interval_in_words(loss)})."


def _about(material: CalibrationMaterial) -> str:
    alpha = material.agreement
    agree = (
        f"Judges agree with each other by {number(alpha.value)} (Krippendorff's α, {interval_in_words(alpha, 2)}; "
        f"{count(alpha.n, 'label')} of {count(alpha.texts, 'text')}); 1 is full agreement, 0 chance."
        if known(alpha.value)
        else f"How far judges agree can't be measured: {alpha.undefined}."
    )
    return (
        f"The model: {printable(material.title, LONG)}. {count(material.judges, 'judge')}; {material.folds} folds by "
        f"text, seed {material.seed}. {agree} "
        "What judges don't agree on, nothing can predict for somebody unknown."
    )


def _cautions(material: CalibrationMaterial) -> Iterator[str]:
    """What the figures don't show."""
    said = str(material.support)
    yield f"{said[0].upper()}{said[1:]}."
    constant = [m for m in material.compared[1:] if m.title == "constant" and m.behind]
    for model in constant:
        if model.behind is not None and known(model.behind.low) and model.behind.low <= 0:
            yield "By its log-loss it can't be told from a constant, which looks at no text and knows no judge."
    for model in material.compared[1:]:
        if model.behind is not None and known(model.behind.high) and model.behind.high < 0:
            yield f"{model.title} has the lower log-loss here, by {number(-(model.behind.value or 0.0), 3)}."
    if material.unlike:
        yield f"{material.unlike[0].upper()}{material.unlike[1:]}."
    if material.choice is not None:
        yield "Models were compared anew inside every fold, so the choice does not flatter the figures."
    if material.learnt_from != 0:
        seen = (
            "Which texts the kept calibrator learnt from isn't known"
            if material.learnt_from is None
            else f"The kept calibrator learnt from {material.learnt_from:,} of these texts"
        )
        yield f"{seen}; the figures are of models fitted anew, with the same settings, without the texts they predict."


def interval_in_words(figure: Measured, digits: int = 3) -> str:
    """`95 % interval 0.44 to 0.51`, or that there is none."""
    bounds = interval(figure, digits)
    return f"{LEVEL} {bounds}" if known(figure.low) else bounds


def _tiles(material: CalibrationMaterial) -> Markup:
    own = material.own
    figures = [("log-loss", own.log_loss, 3), ("Pearson", own.pearson, 2), ("smECE", own.smece, 3)]
    tiles = [
        tag("div", tag("dt", name), tag("dd", number(figure.value, digits), class_="value"),
            tag("dd", interval_in_words(figure, digits), class_="bounds"))
        if known(figure.value)
        else tag("div", tag("dt", name), tag("dd", figure.undefined, class_="undefined"))
        for name, figure, digits in figures
    ]  # fmt: skip
    return tag("dl", tiles, class_="tiles")


def _sections(material: CalibrationMaterial) -> Iterator[Section]:
    yield Section(
        "compared",
        "Beside simpler models",
        "Every model is fitted on the same folds; the kept calibrator as it is stands beside them where no text is one "
        "that it learnt from. What beats neither the constant nor the judge's mean has learnt nothing from the texts.",
        _wide(compared_table(material.compared)) + _subgroups(material),
    )
    yield Section(
        "reliability",
        "Do the probabilities come true?",
        "One drawing an answer: how often it was given against how often it was predicted. On the diagonal the "
        "probabilities are right; a curve is drawn only where there are predictions.",
        _reliability(material),
    )
    yield Section(
        "judges",
        "How each judge answers",
        "The expected answer of each judge against the LLM's expected answer to the same question, smoothed over "
        "texts. Judges who use the scale in other ways lie apart; a flat curve takes nothing from the LLM's answer.",
        _judges(material),
    )
    yield Section(
        "questions",
        "What each question gains",
        f"How much the held-out log-loss rises when the LLM is not asked a question; {_worker(material)}. "
        "Questions that say the same can each be spared, but not all together.",
        _wide(gains_table(material.gains)) if material.gains else tag("p", "One question only was asked."),
    )
    yield Section(
        "leverage",
        "What would raise the main answer",
        f"How much {printable(material.main, NAME)} would rise for a unit gained on "
        + ("what judges say to each question" if material.whose == "judges" else "the LLM's answer to each question")
        + f"; {_worker(material)}.",
        _leverage(material),
    )
    yield Section(
        "learning",
        "Would more labels help?",
        f"Held-out log-loss with a share of the training texts; {_worker(material)}. Where it still falls, more labels "
        "help.",
        _learning(material),
    )
    yield Section(
        "chosen",
        "What was chosen",
        ""
        if material.choice is None
        else f"When the kept calibrator was fitted: {material.choice.sentence()}. These figures helped to choose, "
        "which flatters the best; how good it is stands further up.",
        choice_table(material),
    )
    yield Section("left-out", "What was left out", "", faults_list(material.faults))
    yield Section(
        "words",
        "How to read this page",
        "",
        tag("dl", [[tag("dt", word), tag("dd", meaning)] for word, meaning in GLOSSARY], class_="glossary"),
    )


def _worker(material: CalibrationMaterial) -> str:
    return f"the model: {material.worker}"


def _subgroups(material: CalibrationMaterial) -> Markup:
    return join([_subgroup(column, groups) for column, groups in material.subgroups.items()])


def _subgroup(column: str, groups: Mapping[str, Assessment]) -> Markup:
    """A table, which has to be opened where it is long."""
    title, table = tag("h3", f"By {printable(column, NAME)}"), _wide(subgroups_table(column, groups))
    if len(groups) <= SHORT:
        return title + table
    return title + tag("details", tag("summary", f"{len(groups)} rows"), table)


def _reliability(material: CalibrationMaterial) -> Markup:
    if not material.reliabilities:
        return tag("p", "Too few judgments to say.")
    panels = [
        tag(
            "figure",
            tag("figcaption", f"Answer {diagram.value:g}"),
            reliability_chart(f"Answer {diagram.value:g}: given against predicted, {material.labels} labels", diagram),
            tag("p", _error(material.own.smece_of.get(diagram.value, diagram.smece)), class_="note"),
        )
        for diagram in material.reliabilities
    ]
    key = _key(
        [
            ("positive", "smoothed"),
            ("band", f"its {LEVEL}"),
            ("bins", f"in bins of about as many judgments; {LEVEL}"),
            ("reference", "where it would come true"),
        ]
    )
    return key + tag("div", panels, class_="panels")


def _error(smece: Measured) -> str:
    if not known(smece.value):
        return f"smECE undefined: {smece.undefined}"
    return f"smECE {number(smece.value, 3)} ({interval_in_words(smece)})"


def _leverage(material: CalibrationMaterial) -> Markup:
    if not material.leverages:
        return tag("p", "There is no other question.", class_="empty")
    note = (
        "The intervals are over texts, of this one model: how much it would differ with other labels is not in them. "
        "Questions whose answers go together share their leverage in ways that say little of each."
    )
    return _wide(leverage_table(material.leverages)) + tag("p", note, class_="note")


def _judges(material: CalibrationMaterial) -> Markup:
    if not material.responses:
        why = (
            "The LLM was not asked the main question, or always said the same, or its answers have no order: there is "
            "nothing to draw it against."
        )
        return tag("p", why, class_="empty")
    title = f"Expected answer to {printable(material.main, NAME)} by judge, {len(material.responses)} curves"
    key = _key([("stranger", "somebody unknown"), ("judge", "a judge"), ("own", "the LLM's answer as it is")])
    caption = tag("figcaption", f"Expected answer to {printable(material.main, NAME)}, by judge")
    figure = tag("figure", caption, response_chart(title, material.mesh, material.responses))
    return key + tag("div", figure, class_="panels") + _wide(judges_table(material.responses))


def _learning(material: CalibrationMaterial) -> Markup:
    if sum(point.log_loss is not None for point in material.learning) < 2:
        return tag("p", "Too few labels to draw a curve.", class_="empty")
    caption = tag("figcaption", "Held-out log-loss")
    figure = tag("figure", caption, learning_chart("Held-out log-loss against labels in training", material.learning))
    note = (
        "Mean and standard deviation over draws of texts, which overlap: the deviation is no standard error."
        if any(point.deviation is not None for point in material.learning)
        else "One draw of texts a point: how far another would lie is not known."
    )
    return tag("div", figure, class_="panels") + tag("p", note, class_="note")


def _key(entries: list[tuple[str, str]]) -> Markup:
    swatches = [tag("span", tag("span", class_=f"swatch {class_}"), name, class_="entry") for class_, name in entries]
    return tag("p", swatches, class_="legend")


def _wide(content: Markup) -> Markup:
    return tag("div", content, class_="wide")


def _colophon(material: CalibrationMaterial) -> Markup:
    shown = [tag("div", tag("dt", name), tag("dd", escape(value, LONG))) for name, value in material.facts.items()]
    return tag("footer", tag("dl", shown))
