"""The page on a remedy: what would change, what it does, what got worse, and what isn't known."""

from collections.abc import Mapping, Sequence
from math import expm1
from typing import Any

from pollex.reports.page import render
from pollex.rooms.remedy.measures.advice import RULES, advice_on

WIDE, SPAN, EDGE = 240, 0.5, 4
"""Pixels of a plot, the least effect at its edges, and what stays free beyond these."""


def remedies_page(
    run: str,
    record: Mapping[str, Any],
    pairs: Sequence[Mapping[str, str]],
) -> str:
    """Render the whole page from what is kept; text of conversations, replies and diffs is escaped."""
    return render(
        "remedies.html",
        file="",
        titles={},
        facts={"run": run},
        remedy=sections(record, pairs),
    )


def sections(record: Mapping[str, Any], pairs: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return what the sections of a page show."""
    # each change with the rows of its plot, and what fell
    edits = []
    for edit in record["edits"]:
        edits.append(
            {
                **edit,
                "rows": rows_of(edit),
                "worse": worse_of(edit["guardrails"]),
            }
        )

    advice, why = advice_on(record)
    return {
        **record,
        "pairs": pairs,
        "edits": edits,
        "advice": advice,
        "why": why,
        "rules": RULES,
    }


LOGARITHMS = ("length", "cost")
"""Rows whose effect is −ln(new / old); the others' is a share of the scale from never to always."""


def in_units(name: str, effect: float, digits: int = 0) -> str:
    """Write an effect as people read it: points of 100, or percent more for length and cost."""
    if name in LOGARITHMS:
        return f"{expm1(-effect):+.{digits}%}"
    return f"{100 * effect:+.{digits}f}"


def worse_of(guardrails: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say which guardrails fell beyond chance and by how much; length and cost, which are logarithms, in percent."""
    falls = []
    # the whole interval lies below zero
    for guardrail in (guardrail for guardrail in guardrails if guardrail["effect"]["high"] < 0):
        value, low, high = (
            in_units(guardrail["name"], guardrail["effect"][end])
            for end in ends_of(guardrail["name"])
        )
        # it fell, by less than the margin
        if guardrail["state"] == "cleared":
            state = "within its margin"
        else:
            state = guardrail["state"]

        unit = "" if guardrail["name"] in LOGARITHMS else " points"
        falls.append(f"{guardrail['name']} {value}{unit} [{low}, {high}] ({state})")

    return falls


def ends_of(name: str) -> tuple[str, str, str]:
    """Return value and ends of an effect as they are written: in logarithms more is the other way round."""
    if name in LOGARITHMS:
        return ("value", "high", "low")
    return ("value", "low", "high")


def rows_of(edit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the target and each guardrail with the places of their interval in the plot, harm first."""
    target = {
        "name": "the target",
        "state": edit["verdict"],
        "effect": edit["primary"]["effect"],
        "sealed": False,
    }
    # guardrails by their value, so that what fell stands at the top
    rows = [target, *sorted(edit["guardrails"], key=lambda guardrail: guardrail["effect"]["value"])]
    span = span_of(rows)

    # places in the units of the plot; figures as readers see them
    return [
        {
            **row,
            "told": in_units(row["name"], row["effect"]["value"]),
            "bounds": ", ".join(
                in_units(row["name"], row["effect"][end]) for end in ends_of(row["name"])[1:]
            ),
            **{end: place(row["effect"][end], span) for end in ("low", "value", "high")},
        }
        for row in rows
    ]


def span_of(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the effect at the edges of the plot: no interval is cut."""
    reach: list[float] = []
    for row in rows:
        for end in ("low", "high"):
            reach.append(abs(row["effect"][end]))
    return max(SPAN, *reach)


def place(value: float, span: float) -> float:
    """Return where an effect stands in the plot, a little within its edges."""
    return round(WIDE / 2 + (WIDE / 2 - EDGE) * value / span, 1)
