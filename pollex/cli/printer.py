"""Results on a terminal: each kind has a function that shows it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pollex.cli.session import Screen
from pollex.usecases.use_case import UseCase

SHOWN = {
    "BriefResult": "remedy_output.show_brief",
    "CasesResult": "remedy_output.show_cases",
    "CallPlan": "output.show_plan",
    "CheckResult": "check_output.show_check",
    "CompareResult": "share_output.show_comparison",
    "Evaluation": "output.show_evaluation",
    "RemedyResult": "remedy_output.show_remedy",
    "ShareResult": "share_output.show_share",
}
"""Functions of this package by the results that they show."""


def shown(screen: Screen, result: Any, asked: UseCase[Any]) -> None:
    """Show a result."""
    module, _, name = SHOWN[type(result).__name__].partition(".")
    show = getattr(import_module(f"pollex.cli.{module}"), name)
    more = () if name == "show_plan" else asked.shown_with
    show(screen, result, **{each: getattr(asked, each) for each in more})
