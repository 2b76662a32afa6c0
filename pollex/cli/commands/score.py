"""`pollex score`: new conversations, scored."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import (
    logs_argument,
    rubrics_option,
    scoring_settings,
    with_logs,
    with_run,
    with_set_judge,
)
from pollex.cli.settings import BATCHES, set_option
from pollex.services.options import RunOptions

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions


class Target(click.Path):
    """A path, or an address such as `s3://bucket/scores/`, which stays a text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path or address."""
        return value if isinstance(value, str) and "://" in value else super().convert(value, param, ctx)


@click.command("score", cls=Verb)
@logs_argument
@rubrics_option
@click.option(
    "--out",
    type=Target(path_type=Path),
    default=Path("scores.parquet"),
    show_default=True,
    help="Output file: .parquet, .jsonl or .csv. With --engine: a folder, also s3://….",
)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="NAME",
    help="Also predict the label of this annotator; repeatable, or `all`.",
)
@click.option(
    "--as",
    "form",
    metavar="TOOL",
    help="Write requests for another tool: langfuse, phoenix, mlflow, langsmith, otel, opik or openinference.",
)
@click.option("--engine", metavar="NAME", help="Score into a folder of parts, by `ray` or `one`: logs of any size.")
@click.option("--workers", type=click.IntRange(1), help="With --engine: processes; default: one a core.")
@click.option("--address", metavar="A", help="With --engine ray: of a running cluster; default: one is started here.")
@with_logs()
@with_set_judge
@with_run
@set_option(
    *("encoding", "redact", "comments", "on_duplicate", "thumbs", "pairs"),
    *(
        "costs",
        "cascade",
        "events",
        "no_texts",
        "wide",
        "trace",
        "workers",
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
    rubrics: Path,
    out: Path | str,
    judges: tuple[str, ...],
    form: str | None,
    engine: str | None,
    workers: int | None,
    address: str | None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
) -> int:
    """Score conversations with a rubric set, one row a conversation.

    Filter by `decision`: positive where the probability of a thumb up is at least .5, or as `--set costs=5:1` has it
    where a bad conversation taken for good costs five times as much as a good one taken for bad.

    A row has id, netsat, label (by NetSAT alone, as in the paper; `differs` says why it is not the decision), confident
    (outside the uncertainty window), probability of a thumb up with its entropy, the answers, and guaranteed: whether
    it is outside the window with a guarantee as well; empty where the set has no such window. A conversation that could
    not be scored has its outcome in place of figures, and the exit code is 3.

    \b
    Examples
      pollex score new.jsonl --rubrics rubrics.json --out scores.parquet
      pollex score new.jsonl --rubrics rubrics.json --out - | jq .netsat
      pollex score - --rubrics rubrics.json --out scores.csv < new.jsonl
      pollex score new.jsonl --rubrics rubrics.json --judge anna --judge ben
      pollex score traces.jsonl --rubrics rubrics.json --as langfuse --out scores.json
      pollex score 's3://bucket/logs/*.parquet' --rubrics rubrics.json --out s3://bucket/scores/ --engine ray
    """
    from pollex.cli.output import show_plan, show_scores
    from pollex.services.score import plan_score, score

    if run.dry_run:
        plan = partial(plan_score, logs, rubrics, reading=reading, run=run, model=model)
        return cli.run(plan, show_plan, as_json=run.as_json)
    if engine is not None or isinstance(out, str):
        return _into_parts(*(logs, rubrics, out, engine or "ray", workers, address), judges, reading, run, model)
    bound: dict[str, Any] = {"reading": reading, "run": run, "model": model} | scoring_settings()
    use_case = partial(score, logs, rubrics, out=out, form=form, judges=judges, **bound)
    return cli.run(use_case, show_scores, as_json=run.as_json, data=str(out) == "-")


def _into_parts(
    logs: tuple[str, ...],
    rubrics: Path,
    out: Path | str,
    engine: str,
    workers: int | None,
    address: str | None,
    judges: tuple[str, ...],
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
) -> int:
    """Score into a folder of parts."""
    from pollex.cli.output import show_parts
    from pollex.services.parts import Cluster
    from pollex.services.score_parts import score_parts

    folder = "scores" if str(out) == "scores.parquet" else str(out)
    use_case = partial(
        score_parts,
        *(logs, rubrics),
        out=folder,
        engine=engine,
        cluster=Cluster(workers, address),
        judges=judges,
        costs=scoring_settings().get("costs", (1.0, 1.0)),
        reading=reading,
        model=model,
    )
    return cli.run(use_case, show_parts, as_json=run.as_json)
