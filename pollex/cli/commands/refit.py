"""`pollex refit`: after a person edited the rubrics."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import logs_argument, rubrics_option, verbose_option, with_logs, with_model, with_run
from pollex.cli.settings import BATCHES, set_option, settings_of
from pollex.services.options import RunOptions

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions


@click.command("refit", cls=Verb)
@logs_argument
@rubrics_option
@click.option("--out", type=click.Path(path_type=Path), help="Output file; default: the rubric set itself.")
@click.option("--test-fraction", type=float, help="Share held out for testing; default: as the set was learned.")
@click.option("--seed", type=int, help="Random seed of the split; default: as the set was learned.")
@verbose_option
@with_logs("judge_field", "group_field")
@with_model
@with_run
@set_option(
    *(
        "encoding",
        "redact",
        "comments",
        "on_duplicate",
        "thumbs",
        "label_sources",
        "pairs",
        "elicitation",
        "require",
    ),
    *("without", "canary", "straight_lining", "closing", "value", "embedding_model"),
    *("answers", "deadline", "max_wait", "retry_refused", "langsmith", *BATCHES),
)
def command(
    logs: tuple[str, ...],
    rubrics: Path,
    out: Path | None,
    verbose: bool,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    **given: Any,
) -> int:
    """Judge edited rubrics again, and fit θ, window and probability again.

    NAME.rubrics.toml beside NAME.json is the file to edit, by hand or with `pollex rubrics`: a new rubric needs text
    and polarity (sat or dsat), and `on = false` leaves one out.

    \b
    Examples
      pollex refit logs.jsonl --rubrics rubrics.json
      pollex refit logs.jsonl --rubrics edited.json --out refitted.json
    """
    from pollex.cli.output import show_learned, show_plan
    from pollex.services.learn import plan_refit, refit

    bound: dict[str, Any] = given | settings_of("learning") | {"reading": reading, "run": run, "model": model}
    if run.dry_run:
        return cli.run(partial(plan_refit, logs, rubrics, **bound), show_plan, as_json=run.as_json)
    use_case = partial(refit, logs, rubrics, out=out or rubrics, **bound)
    return cli.run(use_case, show_learned, as_json=run.as_json, verbose=verbose)
