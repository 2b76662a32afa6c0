"""A rubric set after a person edited it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pollex.errors import WrongUse
from pollex.usecases.families import (
    RUBRICS_HELP,
    AnnotatorOptions,
    GroupOptions,
    LabelSourceOptions,
    LearningRoleOptions,
    Reading,
    declare_output_option,
)
from pollex.usecases.use_case import UseCase, opt, use_case

if TYPE_CHECKING:
    from pollex.services.learn_result import LearnResult
    from pollex.services.logs import Data
    from pollex.usecases.families import Rubrics


@use_case("refit")
class RefitSet(
    AnnotatorOptions,
    GroupOptions,
    LabelSourceOptions,
    Reading,
    LearningRoleOptions,
    UseCase["LearnResult"],
):
    """Judge edited rubrics again, and fit θ, window and probability again.

    NAME.rubrics.toml beside NAME.json is the file to edit, by hand or with `pollex rubrics`: a new
    rubric needs text and polarity (sat or dsat), and `on = false` leaves one out.

    \b
    Examples
      pollex refit logs.jsonl --rubrics rubrics.json
      pollex refit logs.jsonl --rubrics edited.json --out refitted.json
    """

    does = "refit.refit"
    resumable = True
    goes_on_in_browser = True
    plans = True
    shown_with = ("verbose",)
    logs: tuple[str, ...] | Data = opt(
        kw_only=False,
        place="argument",
        metavar="LOGS…",
    )
    rubrics: Path | Rubrics = opt(RUBRICS_HELP, kw_only=False, group="Rubrics")
    out: Path | str | None = declare_output_option("Output file; default: the rubric set itself.")
    test_fraction: float | None = opt(
        "Share held out for testing; default: as the set was learned.",
        default=None,
        group="Rubrics",
    )
    seed: int | None = opt(
        "Random seed of the split; default: as the set was learned.",
        default=None,
        group="Question",
        place="rare",
    )
    probability: str | None = opt(
        "Model of the probability: network (the default); best of those compared; or a name.",
        default=None,
        place="setting",
    )
    verbose: bool = opt(
        "Show all figures, notes and calls.",
        default=False,
        group="Output",
        door="terminal",
    )

    def typed(self) -> Self:
        """Write over the set's file where no other file is named.

        Raises:
            WrongUse: The set is one of the store.
        """
        if self.out is not None or not isinstance(self.rubrics, Path):
            return self
        # a name without an ending that is no file: a set of the store
        if not self.rubrics.suffix and not self.rubrics.exists():
            what = f"{self.rubrics} is no file that the refitted set can be written over"
            raise WrongUse(what, hint="name a file", option="out")
        return replace(self, out=self.rubrics)
