"""The page on a remedy: what would change, what it does, what got worse, and what isn't known."""

from collections.abc import Mapping, Sequence
from math import expm1
from typing import Any

from pollex.reports.page import render

WIDE, SPAN = 240, 0.5
"""Pixels of a plot, and the effect at its edges."""


def remedies_page(run: str, kept: Mapping[str, Any], pairs: Sequence[Mapping[str, str]]) -> str:
    """Render the whole page from what is kept; text of conversations, replies and diffs is escaped."""
    return render("remedies.html", file="", titles={}, facts={"run": run}, remedy=sections(kept, pairs))


def sections(kept: Mapping[str, Any], pairs: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return what the sections of a page show."""
    edits = [{**one, "rows": rows_of(one), "worse": worse_of(one["guardrails"])} for one in kept["edits"]]
    advice, why = advice_on(kept)
    return {**kept, "pairs": pairs, "edits": edits, "advice": advice, "why": why, "rules": RULES}


WORTH = 0.08
"""Of the scale: a gain whose interval ends below this is none that is worth a release."""
RULES = {
    "Release": "people who compared blind prefer the new replies, and nothing fell",
    "Try on part of the traffic": "a judge finds the new replies better, and nothing fell",
    "Don't": "something fell, harm is likely, people prefer the old replies, what speaks against the gain isn't "
    f"cleared, or the gain is under {WORTH} at most",
    "Not enough seen": "all else, replies that are missing above all",
}
"""What to do, and when."""
FALLS = ("worse", "no gain, likely harm", "not cleared", "people prefer the old one")


def advice_of(edit: Mapping[str, Any]) -> tuple[str, str]:
    """Return what to do with a change, and why, by the rules of `RULES`."""
    verdict, one = edit["verdict"], edit["primary"]["effect"]
    why = f"{verdict}; {edit['against'][0]}" if edit["against"] else verdict
    if verdict in FALLS:
        return "Don't", why
    if verdict == "better, people agree":
        return "Release", why
    if verdict.startswith("judged better"):
        return "Try on part of the traffic", why
    if verdict == "no difference found" and one["n"] and one["high"] < WORTH:
        return "Don't", f"{verdict}; a gain of {WORTH} or more is ruled out"
    return "Not enough seen", why


def advice_on(kept: Mapping[str, Any]) -> tuple[str, str]:
    """Return what to do with the best change, or with none that came to a proof."""
    if kept["edits"]:
        return advice_of(kept["edits"][0])
    known = kept.get("headroom") is not None
    return ("Don't" if known else "Not enough seen"), str(kept["ended"] or kept["verdict"])


def worse_of(guardrails: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say which guardrails fell beyond chance and by how much; length and cost, which are logarithms, in percent."""
    found = []
    for one in (one for one in guardrails if one["effect"]["high"] < 0):
        ends = [one["effect"][end] for end in ("value", "low", "high")]
        if one["name"] in ("length", "cost"):
            value, high, low = (f"{expm1(-end):+.0%}" for end in ends)
        else:
            value, low, high = (f"{end:+.2f}" for end in ends)
        state = "within its margin" if one["state"] == "cleared" else one["state"]
        found.append(f"{one['name']} {value} [{low}, {high}] ({state})")
    return found


def rows_of(edit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the target and each guardrail with the places of their interval in the plot, harm first."""
    target = {"name": "the target", "state": edit["verdict"], "effect": edit["primary"]["effect"], "sealed": False}
    rows = [target, *sorted(edit["guardrails"], key=lambda one: one["effect"]["value"])]
    return [{**one, **{end: place(one["effect"][end]) for end in ("low", "value", "high")}} for one in rows]


def place(value: float) -> float:
    """Return where an effect stands in the plot."""
    return round(WIDE / 2 + WIDE / 2 * max(-1.0, min(1.0, value / SPAN)), 1)
