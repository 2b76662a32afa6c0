"""`pollex evaluate`: how well rubrics do on labelled conversations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli.options import logs_argument, rubrics_option, with_model, with_reading, with_run
from pollex.services.options import RunOptions

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions


@click.command("evaluate")
@logs_argument
@rubrics_option
@with_reading
@with_model
@with_run
def command(logs: tuple[str, ...], rubrics: Path, reading: ReadOptions, run: RunOptions, model: ModelOptions) -> int:
    """Measure a rubric set on labelled conversations, with 95 % intervals.

    Both windows are measured: the uncertainty window, and the one with a guarantee where the set has one.

    \b
    Examples
      pollex evaluate labelled.jsonl --rubrics rubrics.json
      pollex evaluate labelled.jsonl --rubrics rubrics.json --json | tail -n 1 | jq .auc
    """
    from pollex.services.score import evaluate_command

    return evaluate_command(logs, rubrics, reading, run, model)
