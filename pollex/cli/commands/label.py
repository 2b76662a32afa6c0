"""`pollex label`: choosing what to label next."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli
from pollex.cli.help import Group, Verb
from pollex.cli.options import with_logs, with_run, with_set_judge
from pollex.cli.settings import BATCHES, set_option
from pollex.services.options import RunOptions

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions


@click.group("label", cls=Group)
def command() -> None:
    """Choose what people should label next."""


@command.command("next", cls=Verb)
@click.argument("files", nargs=-1, required=True, metavar="LOGS… | ANSWERS [JUDGMENTS]")
@click.option("--rubrics", type=click.Path(path_type=Path), help="A rubric set that `pollex learn` wrote.")
@click.option(
    "--calibrator",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A calibrator of `pollex calibrate fit`, instead of --rubrics.",
)
@click.option(
    "--for",
    "purpose",
    type=click.Choice(["model", "share"]),
    default="model",
    show_default=True,
    help="Labels that improve predictions (model), or a random sample for `pollex share` (share).",
)
@click.option(
    "--by", metavar="FIELD", help="With --for share: draw --count conversations for each value of this field."
)
@click.option(
    "--count", default=20, show_default=True, type=click.IntRange(min=1), help="Number of conversations to list."
)
@click.option(
    "--judge", "judges", multiple=True, metavar="NAME", help="Annotator who can be asked; repeatable, or `all`."
)
@click.option(
    "--questionnaire", metavar="NAME|FILE", help="With --out: write a sheet of these questions: llm-rubric, or TOML."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Output file: .jsonl or .csv.")
@with_logs()
@with_set_judge
@with_run
@set_option(
    *("encoding", "redact", "comments", "on_duplicate", "thumbs", "pairs"),
    *("judge_field", "group_field"),
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
def next_(
    files: tuple[str, ...],
    rubrics: Path | None,
    calibrator: Path | None,
    count: int,
    judges: tuple[str, ...],
    purpose: str,
    by: str | None,
    questionnaire: str | None,
    out: Path | None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
) -> int:
    """List what to label next: that whose label would make the predictions of all surest.

    These are texts that can't be predicted yet, unlike each other and like many others. Those with a label are not
    listed, but count as known where they can be judged for free: give them, too. A .jsonl file has the conversations
    as the log has them, with an empty thumb: fill it in, and learn from both.

    With --questionnaire the file is a sheet: a row for each text and question, whose empty `answer` people fill in;
    `calibrate fit` reads it as judgments. In serve, a queue and a study take the same questionnaires.

    With judges, whom to ask about each; then a text that one has judged may be listed for another.

    \b
    Examples
      pollex label next logs.jsonl --rubrics rubrics.json --count 20 --out to-label.jsonl
      pollex learn logs.jsonl to-label.jsonl --set on_duplicate=last                 once the thumbs are filled in
      pollex label next logs.jsonl --rubrics rubrics.json --judge ann --judge ben
      pollex label next logs.jsonl --for share --count 100 --out to-label.jsonl      needs no rubric set
      pollex label next logs.jsonl --for share --count 50 --questionnaire llm-rubric --out sheet.csv
      pollex label next --calibrator calibrator answers.csv judgments.csv --json
    """
    if purpose == "share":
        from pollex.cli.share_output import show_drawn
        from pollex.services.draw import draw_for_share

        draw = partial(draw_for_share, files, count=count, by=by, out=out, questionnaire=questionnaire, reading=reading)
        return cli.run(draw, show_drawn, as_json=run.as_json)
    if (rubrics is None) == (calibrator is None):
        raise click.UsageError("give either --rubrics or --calibrator")
    if len(files) > 2 and calibrator is not None:
        raise click.UsageError("--calibrator takes ANSWERS and, if there are any, JUDGMENTS")
    from pollex.cli.output import show_next_conversations, show_next_texts, show_plan
    from pollex.services.label import next_conversations, plan_next  # what predicts is not needed for --help
    from pollex.services.label_texts import next_texts

    if rubrics is None:
        assert calibrator is not None, "one of the two was given"
        chosen = () if judges == ("all",) else judges
        judgments = files[1] if len(files) == 2 else None
        texts = partial(next_texts, calibrator, files[0], judgments, count=count, judges=chosen, out=out)
        texts = partial(texts, questionnaire=questionnaire)
        return cli.run(texts, show_next_texts, as_json=run.as_json)
    if run.dry_run:
        plan = partial(plan_next, files, rubrics, reading=reading, run=run, model=model)
        return cli.run(plan, show_plan, as_json=run.as_json)
    use_case = partial(next_conversations, files, rubrics, count=count, judges=judges, out=out)
    bound = partial(use_case, questionnaire=questionnaire, reading=reading, run=run, model=model)
    return cli.run(bound, show_next_conversations, as_json=run.as_json)
