"""What a store knows, as tools of a coding agent."""

from __future__ import annotations

from pathlib import Path

from pollex.store.folder import DEFAULT_STORE_FOLDER, STORE_ENVIRONMENT_VARIABLE
from pollex.usecases.use_case import TerminalUseCase, opt, use_case


@use_case("mcp")
class ServeStoreToAgent(TerminalUseCase):
    """Offer a store to a coding agent: tools that only read, over standard input and output, without network.

    \b
    Examples
      pollex mcp
      pollex mcp --store .pollex --rubrics rubrics.json --no-texts
    """

    at = "cli.agent_server.serve_agent"
    help_title = "Look"
    store: Path = opt(
        "Folder of the store.",
        default=Path(DEFAULT_STORE_FOLDER),
        env=(STORE_ENVIRONMENT_VARIABLE,),
        exists=True,
        group="Data",
    )
    rubrics: tuple[Path, ...] = opt(
        "Rubric set. Repeatable.",
        default=(),
        exists=True,
        group="Data",
    )
    no_texts: bool = opt(
        "Give figures and ids alone, and nothing that was said.",
        default=False,
    )
