"""The report's part on probabilities: whether they come true, against what, and which model gives them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pollex.rubrics.records import CalibratorRecord, CandidateRow, Figure, ProbabilityFigures
from pollex.rubrics.rubric_set import RubricSet
from pollex.selection.losses import Bools, Floats, Ints
from pollex.web.charts import ends, probability_points, reliability, score_edges
from pollex.web.markup import Markup, tag
from pollex.web.material import Scores
from pollex.web.reliability import bins_of
from pollex.web.score_plots import TOO_FEW, panel, probabilities
from pollex.web.words import SPACE, count, interval, known, number

MEASURES = ("Log-loss", "class share", "ahead by", "Brier", "class share")


def probability_section(rubrics: RubricSet, sides: Mapping[str, Scores]) -> Markup:
    """Everything on probabilities; the curve on NetSAT for a set that has no other model."""
    if (record := rubrics.calibrator) is None:
        return probabilities(rubrics, sides)
    name, scores = list(sides.items())[-1]
    drawn = tag(
        "div", _reliability(name, scores, rubrics), _against_netsat(name, scores, rubrics, sides), class_="panels"
    )
    return tag("p", said_of(rubrics)) + drawn + _truth(record) + _compared(record)


def said_of(rubrics: RubricSet) -> str:
    """Whether the probabilities may be called calibrated, and what they are of."""
    who = rubrics.calibrator.facts.get("learnt", {}).get("judges") if rubrics.calibrator else None
    people = f" {count(len(who), 'judge')} of the log have a probability of their own on request." if who else ""
    return (
        f"The probabilities are {rubrics.support}. Each is that of a thumb up by somebody unknown; a training "
        f"conversation's comes from a model that did not see it.{people}"
    )


def _reliability(side: str, scores: Scores, rubrics: RubricSet) -> Markup:
    name = f"Do the probabilities come true? ({side.lower()})"
    predicted, positive, together = known_probabilities(scores)
    if (n := len(predicted)) < TOO_FEW:
        return panel(name, f"{count(n, 'conversation')} with a probability: too few to say.")
    bins = bins_of(predicted, positive, together)
    of = f"{count(n, 'conversation')} in {count(len(bins), 'bin')} of about {round(n / len(bins))}"
    note = f"{of}, with 95{SPACE}% intervals."
    if not rubrics.support.enough:
        note += f" The probabilities are {rubrics.support}."
    return panel(
        name, reliability(f"Observed share of positive against predicted probability, {n} conversations", bins), note
    )


def _against_netsat(side: str, scores: Scores, rubrics: RubricSet, sides: Mapping[str, Scores]) -> Markup:
    name = f"What the probability adds to NetSAT ({side.lower()})"
    if not len(known_probabilities(scores)[0]):
        return panel(name, "No conversation of this side has a probability.")
    xs = ends(score_edges(rubrics, sides.values()))
    drawing = probability_points(f"Probability of positive against NetSAT, {side.lower()}", scores, xs)
    return panel(
        name, drawing, "Points above one another have the same NetSAT: which rubrics hold makes the difference."
    )


def known_probabilities(scores: Scores) -> tuple[Floats, Bools, Ints]:
    """Probabilities, labels and blocks of the conversations that have a probability, each `[conversation]`."""
    has = ~np.isnan(scores.probability)
    return scores.probability[has], scores.positive[has], scores.together[has]


def _truth(record: CalibratorRecord) -> Markup:
    """Log-loss and Brier score beside those of the class share, with intervals."""
    sides = {"Held out": record.held_out, "Training, cross-fitted": record.training}
    rows = [_truth_row(name, found) for name, found in sides.items() if found]
    caption = (
        f"Less is better; 95{SPACE}% intervals. The class share says of every conversation how many of the "
        "training conversations were positive. An advantage whose interval includes 0 is open."
    )
    if record.training and record.compared:
        caption += " Those on training conversations chose the model, which flatters it a little."
    if not rows:
        return tag("p", "No conversation is left that had no part in them: how true they are is not known.")
    return _table("How true they are", caption, ["", *MEASURES], rows, "figures")


def _truth_row(name: str, found: ProbabilityFigures) -> Markup:
    figures = [found.log_loss, found.share_log_loss, found.gain, found.brier, found.share_brier]
    n = tag("small", count(found.n, "conversation"))
    cells = [_cell(*each, signed=each[1] is found.gain) for each in zip(MEASURES, figures, strict=True)]
    return tag("tr", tag("th", name, n, scope="row"), cells)


def _cell(column: str, figure: Figure, *, signed: bool) -> Markup:
    if not known(figure.value):
        return tag("td", tag("span", interval(figure), class_="undefined"), data_column=column)
    shown = number(figure.value, 3, signed=signed), tag("small", interval(figure, 3))
    return tag("td", *shown, data_column=column, class_="n")


def _compared(record: CalibratorRecord) -> Markup:
    """What was compared on training conversations, and by how much the chosen one did better."""
    if not record.compared:
        why = "there were too few conversations that neither a model nor the choice of rubrics has seen"
        return tag("p", f"Models were not compared, as {why}: {record.chosen} was taken.")
    caption = (
        "Mean log-loss on training conversations that neither the model nor the choice of rubrics saw (5 folds, "
        "rubrics chosen anew without each). A difference within two standard errors, which take what goes together "
        "as one, is noise."
    )
    head = ["Model", "Log-loss", "behind the best", "standard error"]
    ordered = sorted(record.compared, key=lambda row: row.log_loss)
    rows = [_candidate_row(row, chosen=row.name == record.chosen) for row in ordered]
    return _table("Which model gives them", caption, head, rows, "plain")


def _candidate_row(row: CandidateRow, *, chosen: bool) -> Markup:
    return tag(
        "tr",
        tag("th", row.name, tag("small", "chosen") if chosen else None, scope="row"),
        tag("td", number(row.log_loss, 3), class_="n"),
        tag("td", number(row.behind, 3), class_="n"),
        tag("td", "" if chosen else f"± {number(row.error, 3)}", class_="n"),
        class_="chosen" if chosen else None,
    )


def _table(title: str, caption: str, head: list[str], rows: list[Markup], kind: str) -> Markup:
    heads = tag("thead", tag("tr", [tag("th", name, scope="col") for name in head]))
    table = tag("table", tag("caption", caption), heads, tag("tbody", rows), class_=kind)
    return tag("h3", title) + tag("div", table, class_="wide")
