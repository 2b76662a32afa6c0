"""`pollex compare`: two releases, weeks or countries side by side."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import rubrics_option, with_logs, with_run, with_set_judge
from pollex.cli.settings import BATCHES, set_option
from pollex.services.options import RunOptions

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions


@click.command("compare", cls=Verb)
@click.argument("samples", nargs=-1, required=True, metavar="A B… | LOGS…")
@rubrics_option
@click.option("--by", metavar="FIELD", help="Cut the logs by a field: release, started:week, country.")
@click.option(
    "--baseline", metavar="VALUE", help="The value of --by that others are compared with; the first if not set."
)
@click.option("--labels", type=click.Path(path_type=Path), metavar="FILE", help="Labels by id, with `drawn`.")
@click.option("--drawn", type=click.Choice(["random", "voluntary"]), help="How labels without `drawn` were drawn.")
@click.option("--see", default=0.05, show_default=True, metavar="SHARE", help="The difference to plan for.")
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
    samples: tuple[str, ...],
    rubrics: Path,
    by: str | None,
    baseline: str | None,
    labels: Path | None,
    drawn: str | None,
    see: float,
    page: Path | None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
) -> int:
    """Compare samples of conversations: which is better, in which rubrics, and how sure that is.

    Samples are files, runs of the store (score-3), or with --by the values of a field of the logs. The same ids on
    both sides are compared as pairs. Labels at random on both sides give the difference of the share of good ones.

    \b
    Examples
      pollex compare before.jsonl after.jsonl --rubrics rubrics.json
      pollex compare logs.jsonl --by release --baseline 1.0 --rubrics rubrics.json --page compare.html
      pollex compare score-3 score-4 --rubrics rubrics.json --json
    """
    from pollex.cli.share_output import show_comparison
    from pollex.services.compare import compare

    use_case = partial(compare, samples, rubrics, by=by, baseline=baseline, labels=labels, drawn=drawn, see=see)
    bound = partial(use_case, page=page, reading=reading, run=run, model=model)
    return cli.run(bound, show_comparison, as_json=run.as_json)
