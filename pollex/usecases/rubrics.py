"""List, edit and compare the rubrics of a set.

NAME.rubrics.toml beside NAME.json is what people edit, by hand or with these commands: text,
polarity, on or off, and a note. Changes count once they are fitted with `pollex refit`; `pollex
learn` never overwrites them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pollex.runs.options import ModelOptions
from pollex.usecases.families import StoreOptions, declare_url_option
from pollex.usecases.use_case import CallContext, UseCase, declare_options, opt, use_case

if TYPE_CHECKING:
    from pollex.services.sets import EditedRubricSet, LintResult, RubricSetDifference
    from pollex.usecases.families import Rubrics


def declare_argument(**more: Any) -> Any:
    """Declare what stands behind the verb."""
    return opt(kw_only=False, place="argument", **more)


def declare_note_option() -> Any:
    """Declare a remark."""
    return opt(
        "A remark that stays with the rubric.",
        default=None,
        metavar="TEXT",
    )


@declare_options
class EditedSetOptions:
    """A rubric set that people edit."""

    rubrics: Path = declare_argument()


@use_case("rubrics list")
class ListRubrics(EditedSetOptions, StoreOptions, UseCase["EditedRubricSet"]):
    """List the rubrics of a set with their ids, as people edited them.

    \b
    Example
      pollex rubrics list rubrics.json
    """

    does = "sets.list_rubrics"


@use_case("rubrics add")
class AddRubric(EditedSetOptions, UseCase["EditedRubricSet"]):
    """Add a rubric in your own words.

    \b
    Example
      pollex rubrics add rubrics.json "The assistant names the price before it books." --polarity sat
    """

    does = "sets.add_rubric"
    text: str = declare_argument()
    polarity: Literal["sat", "dsat"] = opt(
        "Polarity: `sat` describes good conversations, `dsat` bad ones."
    )
    note: str | None = declare_note_option()


@use_case("rubrics remove")
class RemoveRubric(EditedSetOptions, UseCase["EditedRubricSet"]):
    """Take a rubric out; ID may be the beginning of its id.

    To leave a rubric out for a while, write `on = false` into NAME.rubrics.toml.

    \b
    Example
      pollex rubrics remove rubrics.json 3fd0
    """

    does = "sets.remove_rubric"
    rubric: str = declare_argument(metavar="ID")


@use_case("rubrics reword")
class RewordRubric(EditedSetOptions, StoreOptions, UseCase["EditedRubricSet"]):
    """Give a rubric other words; its id stays, and so does what it is judged by.

    \b
    Example
      pollex rubrics reword rubrics.json 3fd0 "The assistant says what a room costs."
    """

    does = "sets.reword_rubric"
    rubric: str = declare_argument(metavar="ID")
    text: str = declare_argument()
    note: str | None = declare_note_option()
    judge_anew: bool = opt(
        "Give up by what it was judged: its new words say what to look for.",
        default=False,
    )


@use_case("rubrics diff")
class DiffSets(StoreOptions, UseCase["RubricSetDifference"]):
    """Show what two rubric sets differ in: words, sides, order and figures.

    Rubrics with one id are the same rubric, and so are those of the same event and topic.

    \b
    Example
      pollex rubrics diff before.json after.json
    """

    does = "sets.diff_sets"
    before: Path | Rubrics = declare_argument()
    after: Path | Rubrics = declare_argument()


@use_case("rubrics lint")
class LintRubrics(StoreOptions, UseCase["LintResult"]):
    """Mark the rubrics that are hard to judge, with better words where there are some.

    Marked are a rubric in two parts, with "each", "all" or "only", with a presupposition, a near
    twin or a mirror of another, one that is all but constant on training conversations, and one
    that rests on one conversation.

    \b
    Examples
      pollex rubrics lint rubrics.json
      pollex rubrics lint rubrics.json --model MODEL
    """

    does = "sets.lint_rubrics"
    rubrics: Path | Rubrics = declare_argument()
    model: str | None = opt(
        "Model that words marked sentences better; default: rules, where one applies.",
        default=None,
    )
    base_url: str | None = declare_url_option()

    def as_model(self, context: CallContext) -> ModelOptions | None:
        """Return the model, if one is named."""
        if self.model:
            return ModelOptions(model=self.model, base_url=self.base_url)
        return None
