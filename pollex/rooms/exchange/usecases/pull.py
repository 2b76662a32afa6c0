"""Logs from a tool's interface."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.rooms.exchange.services.transfer import TransferResult


@use_case("pull")
class PullLogs(UseCase["TransferResult"]):
    """Fetch logs and scores from langfuse, langsmith, phoenix, mlflow or open-webui into a file.

    Addresses and keys are taken from the variables that the tools' own clients use:
    LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY and LANGFUSE_BASE_URL; LANGSMITH_API_KEY;
    PHOENIX_BASE_URL and PHOENIX_API_KEY; MLFLOW_TRACKING_URI, where the project is the experiment;
    OPEN_WEBUI_URL and OPEN_WEBUI_API_KEY. A fetch that was stopped goes on; a later one fetches
    what is new.

    \b
    Examples
      pollex pull langfuse --out langfuse.jsonl
      pollex pull phoenix --project default --out spans.jsonl
    """

    does = "transfer.pull_logs"
    tool: str = opt(kw_only=False, place="argument", metavar="TOOL")
    out: Path = opt("Output file of JSON lines; new rows are appended.")
    project: str = opt("Project to fetch logs from.", default="")
    since: str = opt(
        "Fetch only logs since this time, such as 2026-11-01T00:00:00Z.",
        default="",
        metavar="TIME",
    )
