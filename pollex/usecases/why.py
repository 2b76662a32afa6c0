"""Where a rubric came from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pollex.usecases.families import StoreOptions
from pollex.usecases.use_case import CallContext, UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.services.history import RubricOrigin


@use_case("why")
class ExplainRubric(StoreOptions, UseCase["RubricOrigin"]):
    """Show a rubric's reasons, their quotes, and the conversations that they are from.

    Turns are numbered from 0, those of the system and of tools too.

    \b
    Examples
      pollex why rubrics.json 815baeb75b41
      pollex why rubrics.json 815b                         the beginning of an id will do
    """

    does = "history.explain_rubric"
    apart = True
    path: Path = opt(kw_only=False, place="argument", metavar="RUBRICS")
    name: str = opt(kw_only=False, place="argument", metavar="RUBRIC_ID")
