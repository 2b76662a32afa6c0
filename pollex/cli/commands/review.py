"""`pollex review`: hands conversations without agreement to people, and reads their answers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import with_store

if TYPE_CHECKING:
    from pollex.services.options import RunOptions
    from pollex.services.verdicts import JudgeResult

PATH = click.Path(path_type=Path)


@click.command("review", cls=Verb)
@click.argument("named", default="last", metavar="[RUN]")
@click.option("--out", type=PATH, metavar="FILE", help="Write the conversations to decide, as JSON lines.")
@click.option("--answers", type=PATH, metavar="FILE", help="Read that file, with answers in its field `answer`.")
@click.option("--ask", is_flag=True, help="Ask on this terminal.")
@click.option("--verdicts", type=PATH, metavar="FILE", help="Write all verdicts: .jsonl, .csv or .parquet.")
@click.option("--accepted", type=PATH, metavar="FILE", help="Write conversations with a rating, for fine-tuning.")
@with_store
def command(
    named: str,
    out: Path | None,
    answers: Path | None,
    ask: bool,
    verdicts: Path | None,
    accepted: Path | None,
    run: RunOptions,
) -> int:
    """Let people decide conversations on which the runs of `pollex judge` disagree.

    RUN is a run's id, as `pollex runs` lists it; the last run of `judge` when left out. --out writes a line for each
    conversation without a rating, the most contested first: write an option into the field `answer` of its lines, and
    hand the file back with --answers. No model is asked again.

    \b
    Examples
      pollex review last --out people.jsonl
      pollex review last --answers people.jsonl --verdicts verdicts.jsonl --accepted good.jsonl
      pollex review judge-1 --ask
    """
    from pollex.cli.interview import Interview  # the store and its graphs are not needed for --help
    from pollex.cli.judge_output import show_verdicts
    from pollex.services.review import review

    files = {"out": out, "answers": answers, "verdicts": verdicts, "accepted": accepted}

    def use_case(progress: cli.Screen) -> JudgeResult:
        interview = partial(Interview, progress) if ask else None
        return review(named, **files, interview=interview, run=run, progress=progress)

    return cli.run(use_case, partial(show_verdicts, store=run.store), as_json=run.as_json)
