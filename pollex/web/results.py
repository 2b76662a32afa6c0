"""What a command came to, as its page shows it: the values of the use case's result, never its terminal's words."""

from __future__ import annotations

from pollex.measures.classification import (
    MIN_CONVERSATIONS_OUTSIDE_WINDOW_TO_REPORT,
    TOO_FEW_OUTSIDE_WINDOW_NOTE,
)
from pollex.measures.intervals import Figure
from pollex.prompts.domain import DomainProfile
from pollex.reports.charts import draw_axis, draw_figure, make_shared_axis
from pollex.rooms import list_hooks
from pollex.services.readings import list_readings
from pollex.text import JsonDict
from pollex.web.children import Child
from pollex.web.doors.hooks import ResultView
from pollex.web.hooks import TemplateValues
from pollex.web.site import Site

FIGURE_FIELD_NAMES = {"value", "low", "high", "n", "undefined", "units"}
"""Names by which a figure with its interval is known among JSON values."""

WORDS_BY_MEASURE = {
    "auc": ("AUC", "of a good and a bad conversation, how often the good one ranks higher"),
    "accuracy": ("Accuracy", "how often good or bad is decided right"),
    "precision": ("Precision", "of those decided good, how many are"),
    "recall": ("Recall", "of the good ones, how many are decided good"),
    "yield_rate": ("Yield at 90 %", "how many can be decided with 90 % of them right"),
    "confident_accuracy": ("Accuracy where the set is sure", "of the scores outside the window"),
}
"""Measures of a rubric set that are shares, with what each says."""


def show_result(site: Site, child: Child) -> tuple[str, TemplateValues] | None:
    """Return the template of a command's result and what fills it; None where it has no page of its own."""
    if child.state != "done" or not isinstance(child.told, dict):
        return None

    # a verb has one word or two
    verb = " ".join(child.arguments[:2])
    views = []
    for view in list_hooks(ResultView):
        if f"{verb} ".startswith(f"{view.verb} "):
            views.append(view)

    if not views:
        return None

    titled = replace_paths_by_titles(site, restore_figures(child.told))
    return views[0].template, {"result": titled} | dict(views[0].figures(titled))


def restore_figures(value: object) -> object:
    """Return JSON values with figures in place of their fields, as templates and drawings take them."""
    if isinstance(value, dict):
        # exactly the fields of a figure: it is one
        if value.keys() == FIGURE_FIELD_NAMES:
            return Figure(**value)
        return {name: restore_figures(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [restore_figures(inner) for inner in value]
    return value


def replace_paths_by_titles(site: Site, value: object) -> object:
    """Return values with the names of logs that were brought in place of the store's paths."""
    readings = list_readings(site.store.folder, kept_only=False)

    def titled(inner: object) -> object:
        if isinstance(inner, str):
            # a path of a log may stand anywhere in a text
            for reading in readings:
                for source in reading.sources:
                    inner = inner.replace(source, reading.name)
            return inner
        if isinstance(inner, list):
            return [titled(item) for item in inner]
        if isinstance(inner, dict):
            return {name: titled(item) for name, item in inner.items()}
        return inner

    return titled(value)


def make_figures(table: JsonDict, n: int) -> dict[str, Figure]:
    """Return the measures of a result that has values, intervals and reasons apart."""
    figures: dict[str, Figure] = {}
    for name, value in table.items():
        # a figure has an interval, or a reason for having none, or is one of the measures
        is_figure = (
            name in table["intervals"] or name in table["undefined"] or name in WORDS_BY_MEASURE
        )
        if is_figure:
            low, high = table["intervals"].get(name, (None, None))
            why = table["undefined"].get(name, "")
            figures[name] = Figure(value, low, high, n=n, undefined=why)
    return figures


def show_profile_draft(result: JsonDict) -> TemplateValues:
    """Return the questions of a domain profile with what was drafted to each; lists have a line each."""
    answers = []
    for name, question in DomainProfile.questions().items():
        drafted = result["profile"][name]
        if drafted:
            answers.append(
                (question.description, drafted if isinstance(drafted, list) else [drafted])
            )

    return {"answers": answers}


def show_evaluation(result: JsonDict) -> TemplateValues:
    """Return the figures of an evaluation."""
    figures = make_figures(result, result["n"])
    # few clear cases say nothing of how often clear cases are right
    when_clear = figures.get("confident_accuracy")
    clear_cases = round((result.get("yield_rate") or 0.0) * result["n"])
    if (
        when_clear
        and when_clear.value is not None
        and 0 < clear_cases < MIN_CONVERSATIONS_OUTSIDE_WINDOW_TO_REPORT
    ):
        figures["confident_accuracy"] = Figure(None, undefined=TOO_FEW_OUTSIDE_WINDOW_NOTE)
    return {
        "figures": figures,
        "measures": WORDS_BY_MEASURE,
        "likelihood": make_figures(result["probability"], result["probability"]["n"]),
    }


def show_comparison(result: JsonDict) -> TemplateValues:
    """Return the drawings of comparisons: shares of good ones, and what each rubric's answers did."""
    return {"comparisons": [_draw_comparison(comparison) for comparison in result["comparisons"]]}


def show_check(result: JsonDict) -> TemplateValues:
    """Return the drawings of the comparison behind a gate."""
    return {"comparisons": [_draw_comparison(result["comparison"])]}


def _draw_comparison(comparison: JsonDict) -> TemplateValues:
    # SciPy comes with it, and pages are there before that
    from pollex.reports.share import draw_forest_plot

    samples = zip(
        (comparison["first"], comparison["second"]),
        comparison["good"],
        strict=True,
    )
    # rubrics that moved come first; one scale for all of them
    rubrics = sorted(comparison["rubrics"], key=lambda rubric: not rubric["moved"])
    scale = make_shared_axis([rubric["difference"] for rubric in rubrics])

    drawn_rubrics = []
    for rubric in rubrics:
        drawn_rubrics.append((rubric, draw_figure(rubric["text"], rubric["difference"], scale)))

    return {
        # results of an older version have no thumbs
        "found": {"thumbs": None, "thumb_difference": None} | comparison,
        "good": draw_forest_plot("Share of good conversations", samples),
        "rubrics": drawn_rubrics,
        "axis": draw_axis(scale),
    }
