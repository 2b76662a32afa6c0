"""A rubric set in another tool's form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pollex.usecases.families import StoreOptions
from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.rooms.exchange.services.exchange import ExportResult


@use_case("export")
class ExportSet(StoreOptions, UseCase["ExportResult"]):
    """Write a rubric set as files of another tool.

    NetSAT is included if the tool can compute it.

    \b
    Examples
      pollex export rubrics.json --to promptfoo --out evals
      pollex export rubrics.json --to openevals --out evaluators
    """

    does = "exchange.export_rubrics"
    rubrics: Path = opt(kw_only=False, place="argument")
    to: str = opt(
        "Tool: autorubric, deepeval, inspect, langfuse, langsmith, mlflow, openevals, phoenix, promptfoo or ragas.",
        metavar="TOOL",
    )
    out: Path = opt("Output folder for the files.")
