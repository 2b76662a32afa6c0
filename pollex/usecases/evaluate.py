"""How well rubrics do on labeled conversations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pollex.usecases.families import (
    RUBRICS_HELP,
    GroupOptions,
    JudgedLogOptions,
    LabelSourceOptions,
)
from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.services.evaluate import Evaluation
    from pollex.services.logs import Data
    from pollex.usecases.families import Rubrics


@use_case("evaluate")
class EvaluateSet(GroupOptions, LabelSourceOptions, JudgedLogOptions, UseCase["Evaluation"]):
    """Measure a rubric set on labeled conversations, with 95 % intervals.

    Both windows are measured: the uncertainty window, and the one with a guarantee where the set
    has one.

    \b
    Examples
      pollex evaluate labeled.jsonl --rubrics rubrics.json
      pollex evaluate labeled.jsonl --rubrics rubrics.json --json | tail -n 1 | jq .auc
    """

    does = "evaluate.evaluate"
    resumable = True
    goes_on_in_browser = True
    plans = True
    logs: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )
    rubrics: Path | Rubrics = opt(RUBRICS_HELP, kw_only=False, group="Rubrics")
