"""`pollex learn`: rubrics from conversations with thumbs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import logs_argument, verbose_option, with_logs, with_model, with_run
from pollex.cli.settings import BATCHES, preset, preset_told, set_option, settings_of
from pollex.services.options import RunOptions
from pollex.services.systems import SYSTEMS, require_model

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.graphs.context import Progress
    from pollex.services.options import ModelOptions
    from pollex.services.plan import CallPlan


@click.command("learn", cls=Verb)
@logs_argument
@click.option("--out", type=click.Path(path_type=Path), default=Path("rubrics.json"), show_default=True)
@click.option(
    "--domain", type=click.Path(path_type=Path), help="Domain profile (TOML); `pollex domain new` writes one."
)
@click.option(
    "--test-fraction", default=0.5, show_default=True, help="Share of conversations held out for testing; 0 for none."
)
@click.option("--budget", type=int, help="Maximum number of rubrics of each kind.  [default: 10 in either list]")
@click.option(
    "--as",
    "system",
    type=click.Choice(list(SYSTEMS)),
    is_eager=True,
    callback=preset,
    help="Settings of a system of RUBICON's paper, for what isn't given; `--dry-run` shows them.",
)
@click.option(
    "--method",
    type=click.Choice(["rubicon", "spur"]),
    default="rubicon",
    show_default=True,
    help="`rubicon` selects from a growing pool; `spur` lets a model revise one small set.",
)
@click.option(
    "--rubrics-from",
    metavar="FILE",
    help="Fit existing rubrics instead: a TOML, autorubric or promptfoo file, or a bundled set's name.",
)
@click.option(
    "--starter",
    type=click.Path(path_type=Path),
    metavar="SET",
    help="A rubric set learned elsewhere: with few labels, both together predict better.",
)
@click.option(
    "--also",
    default="",
    metavar="FIELDS",
    help="Other questions that people rated, separated by commas: where labels are grades, these are learned, too.",
)
@click.option("--seed", default=0, show_default=True, help="Random seed.")
@verbose_option
@with_logs("group_field", "comment_field")
@with_model
@with_run
@set_option(
    *(
        "judge_field",
        "encoding",
        "redact",
        "comments",
        "on_duplicate",
        "thumbs",
        "label_sources",
        "pairs",
        "policy",
        "probability",
        "alpha",
        "prompts",
        "scale",
        "elicitation",
    ),
    *("reasons", "mini_batch", "new_rubrics", "near", "alike"),
    *("require", "without", "canary", "straight_lining", "closing", "value", "embedding_model"),
    *("deadline", "max_wait", "retry_refused", "langsmith", *BATCHES),
)
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

    Writes the rubric set and, beside it, report.html: what was learned, how well it does on held-out conversations, and
    why each rubric was kept or dropped. Where report.html is another set's, it is NAME-report.html.

    With --model the model's rubrics and the built-in ones compete in one pool; each is answered by whom it belongs to,
    and no call is made more. `--set without=built-in` leaves the built-in ones out, `--set prompts=paper` asks with
    the prompts and on the scale of RUBICON's paper, and `--as rubicon` does all as the paper does.

    \b
    Examples
      pollex learn logs.jsonl
      pollex learn 'logs/*.parquet' --domain support.toml --out support.json
      pollex learn ratings.csv --label-field stars --positive '>=4' --negative '<=2'
      pollex learn logs.jsonl --group-field user_id --test-fraction 0.3
      pollex learn logs.jsonl --rubrics-from generic       rubrics written by hand, for comparison
      pollex learn logs.jsonl --as rubicon --model NAME --dry-run
      pollex learn logs.jsonl --starter other.json         few labels, and a set from another product
      pollex learn logs.jsonl --resume                     after a kill or Ctrl-C
    """
    from pollex.cli.output import show_learned, show_plan
    from pollex.graphs.learn.state import LearnSettings, budget_of
    from pollex.services.learn import learn, plan_learn  # what learns is not needed for --help

    starter, system = given.pop("starter"), given.pop("system")
    if system is not None:
        require_model(system, model.name)
    bound: dict[str, Any] = {"domain": given.pop("domain"), "rubrics_from": given.pop("rubrics_from")}
    bound |= {
        "settings": LearnSettings(budget=budget_of(given.pop("budget")), **given, **settings_of("learning")),
        "reading": reading,
        "run": run,
        "model": model,
    }
    if run.dry_run:
        told = () if system is None else (preset_told(click.get_current_context(), system),)

        def planned(progress: Progress) -> CallPlan:
            plan = plan_learn(logs, **bound, progress=progress)
            return replace(plan, notes=(*told, *plan.notes))

        return cli.run(planned, show_plan, as_json=run.as_json)
    return cli.run(
        partial(learn, logs, out=out, starter=starter, **bound), show_learned, as_json=run.as_json, verbose=verbose
    )
