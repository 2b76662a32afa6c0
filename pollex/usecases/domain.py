"""Domain profiles: what the assistant, its users and an ideal conversation are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pollex.usecases.families import ProfileDrafter, Reading, declare_output_option
from pollex.usecases.use_case import TerminalUseCase, UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.services.draft_profile import ProfileDraft
    from pollex.services.logs import Data


@use_case("domain new")
class WriteProfile(TerminalUseCase):
    """Write a domain profile by answering questions.

    \b
    Example
      pollex domain new --out support.toml
      pollex learn logs.jsonl --domain support.toml
    """

    at = "cli.domain.ask_for_profile"
    out: Path = opt(
        "File of the profile.",
        default=Path("domain.toml"),
        group="Output",
    )


@use_case("domain draft")
class DraftProfile(Reading, ProfileDrafter, UseCase["ProfileDraft"]):
    """Have a model draft a domain profile from a log: one call with 12 conversations, drawn at random.

    Labels and other fields are not shown to it. What it writes is a draft: correct it before you
    use it.

    \b
    Examples
      pollex domain draft logs.jsonl --model MODEL --dry-run
      pollex domain draft logs.jsonl --model MODEL --out support.toml
    """

    does = "draft_profile.draft_from_log"
    resumable = True
    goes_on_in_browser = True
    plans = True
    labels_needed = False
    logs: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )
    out: Path | None = declare_output_option("File of the profile.", typed="domain.toml")
