"""What ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pollex.usecases.families import StoreOptions
from pollex.usecases.use_case import UseCase, use_case

if TYPE_CHECKING:
    from pollex.services.history import RunList


@use_case("runs")
class ListRuns(StoreOptions, UseCase["RunList"]):
    """List all runs, the last one last.

    \b
    Examples
      pollex runs
      pollex runs --json | jq '.runs[-1].id'
    """

    does = "history.list_runs"
    apart = True
