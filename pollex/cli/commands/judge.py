"""`pollex judge`: one question about each conversation, answered in several independent runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import LOGS, logs_argument, out_option, with_logs, with_rater, with_run
from pollex.cli.settings import CALLS, QUESTION, READING, set_option, settings_of

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions, RunOptions


@click.command("judge", cls=Verb)
@logs_argument
@click.option("--question", required=True, metavar="TEXT", help="Question about every conversation.")
@click.option(
    "--options",
    default="yes,no",
    show_default=True,
    metavar="A,B,…",
    help="Possible answers; the first one is positive.",
)
@click.option(
    "--ensemble", "runs", default=7, show_default=True, metavar="N", help="Independent runs for each conversation."
)
@click.option(
    "--panel", multiple=True, metavar="MODEL", help="Another model of the endpoint, used in turn. Repeatable."
)
@click.option(
    "--tau",
    type=float,
    metavar="NATS",
    help="Maximum diversity entropy of accepted ratings; default: one run may differ.",
)
@click.option("--tau-precision", type=float, metavar="P", help="Fit τ to this precision on the thumbs in LOGS.")
@click.option("--stop-early", is_flag=True, help="Ask no more runs once the verdict can no longer change.")
@out_option("verdicts.jsonl", "Output file of verdicts: .jsonl, .csv or .parquet.")
@click.option(
    "--accepted", type=click.Path(path_type=Path), help="Output file of conversations with a rating, for fine-tuning."
)
@click.option("--votes", type=click.Path(path_type=Path), help="Output file of each run's answer.")
@with_logs()
@with_rater
@with_run
@set_option(
    *(name for name in READING if name not in LOGS), *QUESTION, *CALLS, "closing", "embedding_model", "temperature"
)
def command(
    logs: tuple[str, ...],
    out: Path,
    accepted: Path | None,
    votes: Path | None,
    options: str,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    **given: Any,
) -> int:
    """Rate conversations with one question, asked in several independent runs.

    Where the runs agree the conversation gets their rating, and goes to --accepted. Where they don't its rating is
    empty: `pollex review` hands such conversations out to people, and takes their answers up. A failed run is never a
    vote.

    \b
    Examples
      pollex judge logs.jsonl --question "Was the task completed?" --model MODEL --accepted good.jsonl
      pollex judge logs.jsonl --question "Did the user give up?" --options no,yes --tau-precision 0.9
      pollex judge logs.jsonl --question "Was the task completed?" --model M1 --panel M2 --stop-early --dry-run
      pollex judge logs.jsonl --question "Was the task completed?" --model M --votes votes.parquet --set variant=v2
      pollex judge logs.jsonl --question "How polite is it?" --options rude,plain,kind --model M
      pollex review last --out people.jsonl
    """
    from pollex.cli.judge_output import show_verdicts  # agents and prompts are not needed for --help
    from pollex.cli.output import show_plan
    from pollex.services.judge import JudgeOptions, judge, plan_judge

    texts = [text.strip() for text in options.split(",") if text.strip()]
    asked = JudgeOptions(options=texts, **given, **settings_of("question"))
    if run.dry_run:
        return cli.run(
            partial(plan_judge, logs, asked, reading=reading, run=run, model=model), show_plan, as_json=run.as_json
        )
    use_case = partial(
        judge, logs, asked, out=out, accepted=accepted, votes=votes, reading=reading, run=run, model=model
    )
    return cli.run(use_case, partial(show_verdicts, store=run.store), as_json=run.as_json)
