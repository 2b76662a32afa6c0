"""The page on a remedy: what would change, what it does, what got worse, and what isn't known."""

from collections.abc import Mapping, Sequence
from math import expm1

from pollex.reports.page import render_template
from pollex.rooms.remedy.measures.advice import ADVICE_RULES, SIZE_NAMES, advise_on_record
from pollex.text import JsonDict, JsonObject

PLOT_WIDTH, LEAST_PLOT_SPAN, PLOT_MARGIN = 240, 0.5, 4
"""Pixels of a plot, the least effect at its edges, and what stays free beyond these."""


def render_remedy_page(
    run: str,
    record: JsonObject,
    pairs: Sequence[Mapping[str, str]],
) -> str:
    """Render the whole page from what is kept; text of conversations, replies and diffs is escaped."""
    return render_template(
        "remedies.html",
        file="",
        titles={},
        facts={"run": run},
        remedy=prepare_sections(record, pairs),
    )


def prepare_sections(record: JsonObject, pairs: Sequence[Mapping[str, str]]) -> JsonDict:
    """Return what the sections of a page show."""
    # each change with the rows of its plot, and what fell
    edits = []
    for edit in record["edits"]:
        edits.append(
            {
                **edit,
                "rows": build_effect_rows(edit),
                "worse": describe_worse_guardrails(edit["guardrails"]),
                "changed": strip_diff_headers(edit["diff"]),
            }
        )

    advice, why = advise_on_record(record)
    return {
        **record,
        "pairs": pairs,
        "edits": edits,
        "advice": advice,
        "why": why,
        "rules": ADVICE_RULES,
    }


def strip_diff_headers(diff: str) -> str:
    """Return the lines of a diff without its names and places; `⋯` stands where lines are left out."""
    lines = []
    for line in diff.splitlines()[2:]:
        if not line.startswith("@@"):
            lines.append(line)
        elif lines:
            lines.append("⋯")

    return "\n".join(lines)


def format_effect(name: str, effect: float, digits: int = 0) -> str:
    """Write an effect as people read it: points of 100, or percent more for length and cost."""
    if name in SIZE_NAMES:
        return f"{expm1(-effect):+.{digits}%}"
    return f"{100 * effect:+.{digits}f}"


def describe_worse_guardrails(guardrails: Sequence[JsonObject]) -> list[str]:
    """Say which guardrails fell beyond chance and by how much; length and cost, which are logarithms, in percent."""
    falls = []
    # the whole interval lies below zero
    for guardrail in (guardrail for guardrail in guardrails if guardrail["effect"]["high"] < 0):
        value, low, high = (
            format_effect(guardrail["name"], guardrail["effect"][end])
            for end in format_interval_of_effect(guardrail["name"])
        )
        # it fell, by less than the margin
        if guardrail["state"] == "cleared":
            state = "within its margin"
        else:
            state = guardrail["state"]

        unit = "" if guardrail["name"] in SIZE_NAMES else " points"
        falls.append(f"{guardrail['name']} {value}{unit} [{low}, {high}] ({state})")

    return falls


def format_interval_of_effect(name: str) -> tuple[str, str, str]:
    """Return value and ends of an effect as they are written: in logarithms more is the other way round."""
    if name in SIZE_NAMES:
        return ("value", "high", "low")
    return ("value", "low", "high")


def build_effect_rows(edit: JsonObject) -> list[dict[str, object]]:
    """Return the target and each guardrail with the places of their interval in the plot, harm first."""
    target = {
        "name": "the target",
        "state": edit["verdict"],
        "effect": edit["primary"]["effect"],
        "sealed": False,
    }
    # guardrails by their value, so that what fell stands at the top
    rows = [target, *sorted(edit["guardrails"], key=lambda guardrail: guardrail["effect"]["value"])]
    span = find_plot_span(rows)

    # places in the units of the plot; figures as readers see them
    return [
        {
            **row,
            "told": format_effect(row["name"], row["effect"]["value"]),
            "bounds": ", ".join(
                format_effect(row["name"], row["effect"][end])
                for end in format_interval_of_effect(row["name"])[1:]
            ),
            **{end: locate_in_plot(row["effect"][end], span) for end in ("low", "value", "high")},
        }
        for row in rows
    ]


def find_plot_span(rows: Sequence[JsonObject]) -> float:
    """Return the effect at the edges of the plot: no interval is cut."""
    reach: list[float] = []
    for row in rows:
        for end in ("low", "high"):
            reach.append(abs(row["effect"][end]))
    return max(LEAST_PLOT_SPAN, *reach)


def locate_in_plot(value: float, span: float) -> float:
    """Return where an effect stands in the plot, a little within its edges."""
    return round(PLOT_WIDTH / 2 + (PLOT_WIDTH / 2 - PLOT_MARGIN) * value / span, 1)
