"""Results on a terminal: each kind has a function that shows it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pollex.cli.session import Screen
from pollex.usecases.use_case import UseCase

SHOWN = {
    "AnswerResult": "grade_output.show_answers",
    "AskResult": "grade_output.show_asked",
    "BriefResult": "remedy_output.show_brief",
    "CalibrationReport": "calibration_output.show_report",
    "CallPlan": "output.show_plan",
    "CasesResult": "remedy_output.show_cases",
    "CheckResult": "check_output.show_check",
    "CompareResult": "share_output.show_comparison",
    "ConversationHistory": "trace_output.show_conversation",
    "DistillResult": "distill_output.show_distilled",
    "DrawnConversations": "share_output.show_drawn",
    "EditedSet": "rubrics_output.show_edit",
    "Evaluation": "output.show_evaluation",
    "Exported": "file_output.show_exported",
    "FittedCalibrator": "calibration_output.show_fitted",
    "Forgotten": "file_output.show_forgotten",
    "GradeResult": "grade_output.show_grades",
    "Health": "output.show_health",
    "Inspection": "inspect_output.show_inspection",
    "JudgeResult": "judge_output.show_verdicts",
    "LearnResult": "output.show_learned",
    "LintResult": "rubrics_output.show_marks",
    "NextConversations": "output.show_next_conversations",
    "NextTexts": "output.show_next_texts",
    "Origin": "trace_output.show_why",
    "PartsResult": "output.show_parts",
    "Predicted": "calibration_output.show_predicted",
    "RemedyResult": "remedy_output.show_remedy",
    "RunList": "trace_output.show_runs",
    "NodeState": "trace_output.show_state",
    "RunTree": "trace_output.show_run",
    "ScoreResult": "output.show_scores",
    "SetDifference": "rubrics_output.show_difference",
    "ShareResult": "share_output.show_share",
    "SimulateResult": "simulate_output.show_dialogues",
    "Transferred": "file_output.show_transferred",
    "TurnsResult": "turns_output.show_turns",
}
"""Functions of this package by the results that they show."""


def shown(screen: Screen, result: Any, asked: UseCase[Any]) -> None:
    """Show a result."""
    module, _, name = SHOWN[type(result).__name__].partition(".")
    show = getattr(import_module(f"pollex.cli.{module}"), name)
    more = () if name == "show_plan" else asked.shown_with
    show(screen, result, **{each: getattr(asked, each) for each in more})
