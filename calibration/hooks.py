"""What a room hangs into the calibration network: it names it in its own `calibration/hooks.py`, as `HOOKS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pollex.errors import WrongUse
from pollex.rooms import list_hooks

if TYPE_CHECKING:
    # scikit-learn comes with them, and takes a second to import
    from pollex.calibration.judgments import AnswerMatrix, Judgments
    from pollex.calibration.network.weights import Weights
    from pollex.measures.arrays import Floats, Ints


@dataclass(frozen=True)
class TrainingRecipe:
    """A recipe by which the calibration network is trained, beside the core's own.

    Attributes:
        name: What the network's `recipe` calls it.
        train: Returns the weights that answer all questions, given the `CalibrationNetwork`, the
            input of its first layer `[sheet, column]`, and the sheets.
    """

    name: str
    train: Callable[[Any, Floats, AnswerMatrix], Weights]


class SearchOutcome(Protocol):
    """What a search tried and found."""

    @property
    def better_settings(self) -> Mapping[str, object] | None:
        """The settings that were found; None where those given are as good."""

    def sentence(self) -> str:
        """Describe the search and its result."""


@dataclass(frozen=True)
class SettingsSearch:
    """A search for settings of the calibration network.

    Attributes:
        name: What the network's `search` calls it.
        find: Searches, given the `CalibrationNetwork`, all rows, their judgments, and what stays
            together `[row]`.
    """

    name: str
    find: Callable[[Any, Floats, Judgments, Ints], SearchOutcome]


def get_training_recipe(name: str) -> TrainingRecipe:
    """Return a recipe of a room.

    Raises:
        WrongUse: No room has one of this name.
    """
    recipes: dict[str, TrainingRecipe] = {r.name: r for r in list_hooks(TrainingRecipe)}
    if name not in recipes:
        raise make_unknown_setting_word_error("recipe", name, ["shrunk", *recipes])
    return recipes[name]


def get_settings_search(name: str) -> SettingsSearch:
    """Return a search of a room.

    Raises:
        WrongUse: No room has one of this name.
    """
    searches: dict[str, SettingsSearch] = {s.name: s for s in list_hooks(SettingsSearch)}
    if name not in searches:
        raise make_unknown_setting_word_error("search", name, [*searches, None])
    return searches[name]


def make_unknown_setting_word_error(
    setting: str, name: str, known_names: Sequence[str | None]
) -> WrongUse:
    """Return the error for a word that no room knows."""
    names = ", ".join(map(repr, known_names))
    return WrongUse(
        f"{setting}={name!r}",
        hint=f"use one of {names}; others may be of a room: pip install 'pollex[all]' has all",
    )
