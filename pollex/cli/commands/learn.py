"""`pollex learn`: rubrics from conversations with thumbs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollex.cli import session as cli
from pollex.cli.options import logs_argument, verbose_option, with_model, with_reading, with_run
from pollex.services.options import RunOptions

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions


@click.command("learn")
@logs_argument
@click.option("--out", type=click.Path(path_type=Path), default=Path("rubrics.json"), show_default=True)
@click.option(
    "--domain", type=click.Path(path_type=Path), help="Domain profile (TOML); `pollex domain new` writes one."
)
@click.option("--test-fraction", default=0.5, show_default=True, help="Share held out for honest figures; 0 for none.")
@click.option("--budget", default=10, show_default=True, help="Rubrics of each kind, at most.")
@click.option(
    "--method",
    type=click.Choice(["rubicon", "spur"]),
    default="rubicon",
    show_default=True,
    help="A growing pool to choose from, or one small set that a model keeps revising.",
)
@click.option(
    "--scale",
    type=click.Choice(["occasion", "likert-domain", "likert", "numeric"]),
    default="occasion",
    show_default=True,
    help="How a model is asked rubrics: in five words, told of the domain or not, or in grades from 1 to 10.",
)
@click.option(
    "--rubrics-from",
    metavar="FILE",
    help="Learn none: fit those of a TOML file, of autorubric or promptfoo, or a bundled set's name.",
)
@click.option(
    "--policy",
    default="separation",
    show_default=True,
    help="How rubrics are chosen: separation; the paper's greedy, correctness, brute_force, ucb; swaps; random_order.",
)
@click.option("--alpha", type=float, help="Weight of sharpness; chosen by cross-validation when left out.")
@click.option("--seed", default=0, show_default=True, help="Of the split and everything drawn.")
@verbose_option
@with_reading
@with_model
@with_run
def command(
    logs: tuple[str, ...],
    out: Path,
    verbose: bool,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    **given: Any,
) -> int:
    """Learn rubrics from conversations with thumbs up and down.

    Writes the rubric set and, beside it, report.html: what was learnt, how well it does on conversations that were held
    out, and why each rubric was kept or dropped. Where report.html is another set's, it is NAME-report.html.

    \b
    Examples
      pollex learn logs.jsonl
      pollex learn 'logs/*.parquet' --domain support.toml --out support.json
      pollex learn ratings.csv --label-field stars --positive '>=4' --negative '<=2'
      pollex learn logs.jsonl --group-field user_id --test-fraction 0.3
      pollex learn logs.jsonl --rubrics-from generic       rubrics written by hand, for comparison
      pollex learn logs.jsonl --resume                     after a kill or Ctrl-C
    """
    from pollex.cli.output import show_learned, show_plan
    from pollex.graphs.learn.state import LearnSettings
    from pollex.services.learn import learn, plan_learn  # what learns is not needed for --help

    model = replace(model, scale=given.pop("scale"))
    budget = given.pop("budget")
    bound: dict[str, Any] = {"domain": given.pop("domain"), "rubrics_from": given.pop("rubrics_from")}
    bound |= {
        "settings": LearnSettings(budget=(budget, budget), **given),
        "reading": reading,
        "run": run,
        "model": model,
    }
    if run.dry_run:
        return cli.run(partial(plan_learn, logs, **bound), show_plan, as_json=run.as_json)
    return cli.run(partial(learn, logs, out=out, **bound), show_learned, as_json=run.as_json, verbose=verbose)
