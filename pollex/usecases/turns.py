"""What a conversation's beginning tells of its thumb."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pollex.usecases.families import RUBRICS_HELP, GroupOptions, Reading, declare_output_option
from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.services.evaluate import TurnsResult
    from pollex.services.logs import Data
    from pollex.usecases.families import Rubrics


@use_case("turns")
class MeasureTurns(GroupOptions, Reading, UseCase["TurnsResult"]):
    """Measure what the beginnings of conversations tell of their thumbs.

    Satisfaction shows in how a conversation ends: on many logs a score before the end says less
    than the share of thumbs up alone. For 1, 2, 3, 5 and 8 turns of the user, a probability is
    fitted to labeled conversations and measured on others of them; only where it is better is it
    given by `--scores`, and by `pollex serve --score` at `/v1/score?turns=true` with the set that
    --out writes. Take conversations that the set was not learned from.

    \b
    Examples
      pollex turns labeled.jsonl --rubrics rubrics.json
      pollex turns labeled.jsonl --rubrics rubrics.json --out early.json --scores turns.parquet
    """

    does = "evaluate.fit_turns"
    logs: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )
    rubrics: Path | Rubrics = opt(RUBRICS_HELP, kw_only=False, group="Rubrics")
    out: Path | str | None = declare_output_option("Write the rubric set with these probabilities.")
    scores: Path | str | None = declare_output_option(
        "Write a score after each of the user's first 50 turns."
    )
