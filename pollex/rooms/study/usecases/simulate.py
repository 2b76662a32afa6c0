"""Dialogues of a simulated user with systems, for where logs are private."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pollex.usecases.families import PlayerModelOptions, declare_output_option, split_words
from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pollex.rooms.study.services.simulate import SimulateResult


@use_case("simulate")
class SimulateDialogues(PlayerModelOptions, UseCase["SimulateResult"]):
    """Simulate dialogues on topics, one for each system, topic and persona.

    DS1 writes a dialogue in one call, without documents. DS2 is given those that the topic names,
    DS3 the best five by BM25. In DS4 a user and an assistant take turns, with documents found for
    the dialogue so far; in DS5 the model writes the search query. Sources are kept if their quotes
    stand in the documents. Dialogues have no thumbs.

    \b
    Examples
      pollex simulate --topics topics.toml --systems DS1 --model M --dry-run
      pollex simulate --topics topics.toml --systems DS3,DS4 --documents help/ --model M --out dialogues.jsonl
      pollex judge dialogues.jsonl --question "Was the task completed?" --model M
    """

    does = "simulate.simulate_dialogues"
    resumable = True
    plans = True
    topics: Path | str = opt("TOML file of topics and personas.", kw_only=False)
    systems: tuple[str, ...] | Sequence[str] = opt(
        "Systems: DS1, DS2, DS3, DS4, DS5.",
        kw_only=False,
        typed="DS1",
        metavar="A,B,…",
        parse=split_words,
    )
    documents: Path | str | None = opt(
        "Folder of documents; DS2 to DS5 need it.",
        default=None,
    )
    turns: int = opt(
        "Maximum number of user turns in DS4 and DS5.",
        default=8,
        least=1,
    )
    seed: int = opt(
        "Random seed, sent with every call.",
        default=0,
        group="Question",
        place="rare",
    )
    out: Path | str | None = declare_output_option(
        "Output file, one row for each dialogue: .jsonl.",
        typed="dialogues.jsonl",
    )
