"""`pollex distill`: a model's rubrics, answered without the model."""

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
    from pollex.services.distill_figures import Hard
    from pollex.services.options import ModelOptions


@click.command("distill", cls=Verb)
@logs_argument
@rubrics_option
@click.option("--out", type=click.Path(path_type=Path), default=Path("distilled.json"), show_default=True)
@click.option(
    "--hard",
    type=click.Choice(["drop", "model"]),
    default="drop",
    show_default=True,
    help="Rubrics that can't be answered without the model: they go, or the model goes on.",
)
@click.option(
    "--least", default=0.3, show_default=True, help="Correlation with the model's answers that a rubric needs."
)
@with_logs("judge_field", "group_field")
@with_set_judge
@with_run
@set_option(
    *("encoding", "redact", "comments", "on_duplicate", "thumbs", "pairs"),
    *("embedding_model", "require", "deadline", "max_wait", "retry_refused", "langsmith", *BATCHES),
)
def command(
    logs: tuple[str, ...],
    rubrics: Path,
    out: Path,
    hard: Hard,
    least: float,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
) -> int:
    """Teach a built-in judge to answer a set's rubrics from the model's answers that the store has.

    LOGS have the conversations that were judged, with their thumbs. Each rubric is learned from words, signals and
    events, and told how well its answers are foretold for conversations that it was not learned from. The new set
    scores without a call; `pollex score --set cascade=RUBRICS` asks the model where a label is in doubt.

    \b
    Examples
      pollex distill logs.jsonl --rubrics rubrics.json --out distilled.json
      pollex score new.jsonl --rubrics distilled.json --out scores.parquet
      pollex score new.jsonl --rubrics distilled.json --set cascade=rubrics.json --out scores.parquet
    """
    from pollex.cli.distill_output import show_distilled
    from pollex.errors import WrongUse
    from pollex.services.distill import distill

    if run.dry_run:
        raise WrongUse("answers that were paid for are all that is used", remedy="leave out --dry-run")
    bound = partial(distill, logs, rubrics, out=out, hard=hard, least=least, reading=reading, run=run, model=model)
    return cli.run(bound, show_distilled, as_json=run.as_json)
