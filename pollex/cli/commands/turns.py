"""`pollex turns`: what a conversation's beginning tells of its thumb."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollex.cli import session as cli
from pollex.cli.help import Verb
from pollex.cli.options import logs_argument, rubrics_option, with_logs
from pollex.cli.settings import set_option

if TYPE_CHECKING:
    from pollex.formats.fields import ReadOptions


@click.command("turns", cls=Verb)
@logs_argument
@rubrics_option
@click.option("--out", type=click.Path(path_type=Path), help="Write the rubric set with these probabilities.")
@click.option(
    "--scores", type=click.Path(path_type=Path), help="Write a score after each of the user's first 50 turns."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
@with_logs("group_field")
@set_option("encoding", "on_duplicate", "thumbs", "pairs")
def command(
    logs: tuple[str, ...],
    rubrics: Path,
    out: Path | None,
    scores: Path | None,
    as_json: bool,
    reading: ReadOptions,
) -> int:
    """Measure what the beginnings of conversations tell of their thumbs.

    Satisfaction shows in how a conversation ends: on many logs a score before the end says less than the share of
    thumbs up alone. For 1, 2, 3, 5 and 8 turns of the user, a probability is fitted to labeled conversations and
    measured on others of them; only where it is better is it given by `--scores`, and by `pollex serve --score` at
    `/v1/score?turns=true` with the set that --out writes. Take conversations that the set was not learned from.

    \b
    Examples
      pollex turns labeled.jsonl --rubrics rubrics.json
      pollex turns labeled.jsonl --rubrics rubrics.json --out early.json --scores turns.parquet
    """
    from pollex.cli.turns_output import show_turns
    from pollex.services.turns import fit_turns

    use_case = partial(fit_turns, logs, rubrics, out=out, scores=scores, reading=reading)
    return cli.run(use_case, show_turns, as_json=as_json)
