"""How well rubrics do on labeled conversations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pollex.usecases.families import AllLabels, ByJudge, Grouped, logs_argument, rubrics_option, set_of
from pollex.usecases.use_case import Crew, UseCase, use_case

if TYPE_CHECKING:
    from pollex.services.evaluate import Evaluation
    from pollex.services.logs import Data
    from pollex.services.plan import CallPlan
    from pollex.usecases.families import Rubrics


@use_case("evaluate")
class EvaluateSet(Grouped, AllLabels, ByJudge, UseCase["Evaluation"]):
    """Measure a rubric set on labelled conversations, with 95 % intervals.

    Both windows are measured: the uncertainty window, and the one with a guarantee where the set has one.

    \b
    Examples
      pollex evaluate labelled.jsonl --rubrics rubrics.json
      pollex evaluate labelled.jsonl --rubrics rubrics.json --json | tail -n 1 | jq .auc
    """

    logs: tuple[str, ...] | Data = logs_argument()
    rubrics: Path | Rubrics = rubrics_option(kw_only=False)

    def carry_out(self, crew: Crew) -> Evaluation:
        """See `services.evaluate.evaluate`."""
        from pollex.services.evaluate import evaluate

        return evaluate(self.read(self.logs), set_of(self.rubrics), **self.common(crew))

    def plan(self, crew: Crew) -> CallPlan:
        """See `services.evaluate.plan_evaluate`."""
        from pollex.services.evaluate import plan_evaluate

        return plan_evaluate(self.read(self.logs), set_of(self.rubrics), **self.common(crew))
