"""What a rubric is: the verb `rubrics state`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pollex.usecases.families import StoreOptions
from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.rooms.remedy.services.life import RubricLife


@use_case("rubrics state")
class SetRubricState(StoreOptions, UseCase["RubricLife"]):
    """Say what a rubric is: open, mending, mended, or accepted; without a word, show its life.

    Its life is how often it held by week and by release, thumbs down there and elsewhere, and what
    became of it. States are the store's; `pollex check` fails where a mended rubric is back again.

    \b
    Examples
      pollex rubrics state 3fd0
      pollex rubrics state 3fd0 mended --in 2.14 --note "asks for the number once"
    """

    does = "life.set_rubric_state"
    rubric: str = opt(kw_only=False, place="argument", metavar="ID")
    state: Literal["open", "mending", "mended", "accepted"] | None = opt(
        kw_only=False,
        place="argument",
        default=None,
    )
    release: str = opt("Release in which it is mended.", default="", flag="in")
    note: str = opt("A remark.", default="", metavar="TEXT")
    who: str = opt(
        "Who says it; your user name if not set.",
        default="",
        metavar="NAME",
    )
