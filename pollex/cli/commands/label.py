"""`pollex label`: what people should be asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli.options import with_model, with_reading, with_run, written
from pollex.services.options import RunOptions

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions
    from pollex.services.options import ModelOptions


TEXTS = ("files", "calibrator", "count", "judges", "out", "as_json")
"""What counts where texts have answers of one's own."""


@click.group("label")
def command() -> None:
    """Labels: which ones to ask people for."""


@command.command("next")
@click.argument("files", nargs=-1, required=True, metavar="LOGS… | ANSWERS [JUDGMENTS]")
@click.option("--rubrics", type=click.Path(path_type=Path), help="A rubric set that `pollex learn` wrote.")
@click.option(
    "--calibrator",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="In its place, for answers of your own: what `pollex calibrate fit` wrote.",
)
@click.option("--count", default=20, show_default=True, type=click.IntRange(min=1), help="How many to list.")
@click.option("--judge", "judges", multiple=True, metavar="NAME", help="Who can be asked. Repeatable; `all` for all.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Ends in .jsonl or .csv.")
@with_reading
@with_model
@with_run
def next_(
    files: tuple[str, ...],
    rubrics: Path | None,
    calibrator: Path | None,
    count: int,
    judges: tuple[str, ...],
    out: Path | None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
) -> int:
    """List what to label next: that whose label would make the predictions of all surest.

    These are texts that can't be predicted yet, unlike each other and like many others. Those with a label are not
    listed, but count as known where they can be judged for free: give them, too. A .jsonl file has the conversations
    as the log has them, with an empty thumb: fill it in, and learn from both.

    With judges, whom to ask about each; then a text that one has judged may be listed for another.

    \b
    Examples
      pollex label next logs.jsonl --rubrics rubrics.json --count 20 --out to-label.jsonl
      pollex learn logs.jsonl to-label.jsonl --on-duplicate last                 once the thumbs are filled in
      pollex label next logs.jsonl --rubrics rubrics.json --judge ann --judge ben
      pollex label next --calibrator calibrator answers.csv judgments.csv --json
    """
    if (rubrics is None) == (calibrator is None):
        raise click.UsageError("give either --rubrics or --calibrator")
    if rubrics is not None:
        from pollex.services.label import next_conversations  # what predicts is not needed for --help

        return next_conversations(
            files, rubrics, count=count, judges=judges, out=out, reading=reading, run=run, model=model
        )
    if strange := written(*(str(one.name) for one in next_.params if one.name not in TEXTS)):
        raise click.UsageError(f"{', '.join(strange)} and --calibrator don't go together")
    if len(files) > 2:
        raise click.UsageError("--calibrator takes ANSWERS and, if there are any, JUDGMENTS")
    from pollex.services.label import next_texts

    assert calibrator is not None, "one of the two was given"
    chosen = () if judges == ("all",) else judges
    judgments = files[1] if len(files) == 2 else None
    return next_texts(calibrator, files[0], judgments, count=count, judges=chosen, out=out, as_json=run.as_json)
