"""`pollex share`: how many of all conversations are good."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import logs_argument, with_logs, with_run, with_set_judge
from pollex.cli.settings import BATCHES, set_option
from pollex.services.options import RunOptions

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions


@click.command("share", cls=Verb)
@logs_argument
@click.option("--rubrics", type=click.Path(path_type=Path), help="A rubric set; its scores narrow the interval.")
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Labels by conversation id, with `drawn`; the logs' own if not set.",
)
@click.option("--by", metavar="FIELD", help="A line for each value: release, started:week, segment (topics).")
@click.option(
    "--drawn",
    type=click.Choice(["random", "voluntary"]),
    help="How labels without a field `drawn` were selected.",
)
@click.option("--page", type=click.Path(path_type=Path), metavar="FILE", help="Also write a page (.html).")
@with_logs("group_field")
@with_set_judge
@with_run
@set_option(
    *("encoding", "redact", "on_duplicate", "thumbs", "pairs", "judge_field"),
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
def command(
    logs: tuple[str, ...],
    rubrics: Path | None,
    labels: Path | None,
    by: str | None,
    drawn: str | None,
    page: Path | None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
) -> int:
    """Estimate the share of good conversations over all, from few labels, with 95 % intervals.

    Give all conversations, those without a label too. Labels drawn at random give the share of all. Labels that users
    gave because they liked to (voluntary) give the share of voters, the share of all if votes depend on the
    conversation alone, and bounds for how far that may be off. The two are never mixed.

    \b
    Examples
      pollex label next logs.jsonl --for share --count 100 --out to-label.jsonl      then fill in the thumbs
      pollex share logs.jsonl --labels to-label.jsonl --rubrics rubrics.json
      pollex share logs.jsonl --rubrics rubrics.json --by release --page share.html
      pollex share logs.jsonl --drawn voluntary --by started:week
    """
    from pollex.cli.share_output import show_share
    from pollex.services.share import plan_share, share

    if run.dry_run:
        from pollex.cli.output import show_plan

        plan = partial(plan_share, logs, rubrics, reading=reading, run=run, model=model)
        return cli.run(plan, show_plan, as_json=run.as_json)
    use_case = partial(share, logs, rubrics, labels=labels, by=by, drawn=drawn, page=page)
    return cli.run(partial(use_case, reading=reading, run=run, model=model), show_share, as_json=run.as_json)
