"""Domain profiles: what the assistant, its users and an ideal conversation are."""

from __future__ import annotations

from pathlib import Path

from pollex.usecases.use_case import AtTerminal, opt, use_case


@use_case("domain new")
class WriteProfile(AtTerminal):
    """Write a domain profile by answering questions.

    \b
    Example
      pollex domain new --out support.toml
      pollex learn logs.jsonl --domain support.toml
    """

    at = "cli.domain.make_profile"
    out: Path = opt(
        "File of the profile.",
        default=Path("domain.toml"),
        group="Output",
    )
