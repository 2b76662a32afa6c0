"""`pollex evaluate`: how well rubrics do on labelled conversations."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import logs_argument, rubrics_option, with_logs, with_run, with_set_judge
from pollex.cli.settings import BATCHES, set_option
from pollex.services.options import RunOptions

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions


@click.command("evaluate", cls=Verb)
@logs_argument
@rubrics_option
@with_logs("group_field")
@with_set_judge
@with_run
@set_option(
    *("encoding", "redact", "on_duplicate", "thumbs", "label_sources", "pairs"),
    "judge_field",
    *(
        "embedding_model",
        "require",
        "deadline",
        "max_wait",
        "max_cost",
        "price",
        "retry_refused",
        "langsmith",
        *BATCHES,
    ),
)
def command(logs: tuple[str, ...], rubrics: Path, reading: ReadOptions, run: RunOptions, model: ModelOptions) -> int:
    """Measure a rubric set on labelled conversations, with 95 % intervals.

    Both windows are measured: the uncertainty window, and the one with a guarantee where the set has one.

    \b
    Examples
      pollex evaluate labelled.jsonl --rubrics rubrics.json
      pollex evaluate labelled.jsonl --rubrics rubrics.json --json | tail -n 1 | jq .auc
    """
    from pollex.cli.output import show_evaluation, show_plan
    from pollex.services.evaluate import evaluate, plan_evaluate

    if run.dry_run:
        plan = partial(plan_evaluate, logs, rubrics, reading=reading, run=run, model=model)
        return cli.run(plan, show_plan, as_json=run.as_json)
    use_case = partial(evaluate, logs, rubrics, reading=reading, run=run, model=model)
    return cli.run(use_case, show_evaluation, as_json=run.as_json)
