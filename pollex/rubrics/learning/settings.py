"""Settings of a learning run."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from pollex.calibration.candidates import find_calibration_model_name
from pollex.errors import WrongUse
from pollex.selection.policies import DEFAULT_SELECTION_POLICY_NAME, get_selection_policy

MAX_RANDOM_SEED = 2**32 - 1
"""What scikit-learn takes."""

LearningMethod = Literal["rubicon", "spur"]

DEFAULT_MAX_RUBRICS = 15
"""Rubrics of a set where no budget is given: more add little."""

SPUR_RUBRICS_PER_SIDE = 7
"""Of a set that a model revises in place, likewise."""

DEFAULT_HELD_OUT_SHARE = 0.5

MIN_LABELS_OF_SMALLER_CLASS_TO_HOLD_OUT = 200
"""Labels of the smaller class from which on half of them are held out; fewer all teach, and folds measure."""


def make_rubric_budget_per_side(most: int | None) -> tuple[int, int] | None:
    """Return the budget of a set with at most so many rubrics of each side; None where it isn't given."""
    return None if most is None else (most, most)


def resolve_test_fraction(share: float | None, *, smaller: int) -> float:
    """Return the share of labels to hold out: the given one, else half, or none where labels are few.

    Args:
        smaller: Labels of the smaller class.
    """
    if share is not None:
        return share
    return DEFAULT_HELD_OUT_SHARE if smaller >= MIN_LABELS_OF_SMALLER_CLASS_TO_HOLD_OUT else 0.0


@dataclass(frozen=True)
class LearnSettings:
    """Settings of a learning run.

    Attributes:
        test_fraction: Share of the labeled conversations that is held out of words and choice; 0
            holds nothing out.
            None leaves it to the number of labels, see `resolve_test_fraction`.
        budget: Maximum number of SAT and of DSAT rubrics of the set, whoever wrote them; None:
            `DEFAULT_MAX_RUBRICS` in all.
        mini_batch: Reasons a summarizer sees at once.
        method: `rubicon` writes a growing pool and chooses from it; `spur` revises one set of
            limited size in place.
        policy: How rubrics are chosen; a name of `selection.policies`.
        alpha: Weight of sharpness; None chooses it by cross-validation.
        probability: What gives the probability of a thumb up: `network`; `best`, the one with the
            least log-loss; or the name of a model.
        also: Fields of other questions that people rated, separated by commas: where the labels are
            grades, the network learns these first, with the grades.
        fills: Whether a model's rubrics are chosen up to the budget, as in the paper, and not as
            far as they lower the loss of conversations that the choice did not see.
        stability: Whether to measure how often halves of the conversations choose each rubric.
        minimum: Conversations of each class that are needed to learn at all.
    """

    test_fraction: float | None = DEFAULT_HELD_OUT_SHARE
    budget: tuple[int, int] | None = None
    mini_batch: int = 20
    method: LearningMethod = "rubicon"
    policy: str = DEFAULT_SELECTION_POLICY_NAME
    alpha: float | None = None
    probability: str = "network"
    also: str = ""
    seed: int = 0
    fills: bool = False
    stability: bool = True
    minimum: int = 10

    @property
    def share(self) -> float:
        """The share that is held out; `settled` has looked at the labels."""
        assert self.test_fraction is not None, "settled before anything is split"
        return self.test_fraction

    @property
    def limits(self) -> tuple[int, int]:
        """Rubrics of satisfaction and of dissatisfaction at most."""
        if self.budget is not None:
            return self.budget
        if self.method == "spur":
            return (SPUR_RUBRICS_PER_SIDE, SPUR_RUBRICS_PER_SIDE)
        return (DEFAULT_MAX_RUBRICS, DEFAULT_MAX_RUBRICS)

    @property
    def most(self) -> int:
        """Rubrics in all at most."""
        if self.budget is None:
            return DEFAULT_MAX_RUBRICS
        return sum(self.budget)

    @property
    def others_rated(self) -> list[str]:
        """Names of the fields in `also`."""
        return [name.strip() for name in self.also.split(",") if name.strip()]

    def __post_init__(self) -> None:
        """Refuse settings that can't be carried out, before any work is done.

        Raises:
            WrongUse: Says what, and what to give instead.
        """
        # both raise an error for a name that they don't know
        get_selection_policy(self.policy)
        find_calibration_model_name(self.probability)
        if self.method not in get_args(LearningMethod):
            raise WrongUse(
                f"no method is called {self.method!r}",
                hint=f"use one of {', '.join(get_args(LearningMethod))}",
            )

        if self.test_fraction is not None and not 0 <= self.test_fraction < 1:
            raise WrongUse(
                f"a test fraction of {self.test_fraction}",
                hint="give one from 0 to less than 1",
            )

        if min(self.limits) < 0 or max(self.limits) < 1:
            raise WrongUse(
                f"a budget of {max(self.limits)}",
                hint="give 1 or more rubrics of each side",
            )

        if self.mini_batch < 1:
            raise WrongUse(
                f"a mini-batch of {self.mini_batch}",
                hint="give 1 or more reasons",
            )

        if self.alpha is not None and not (math.isfinite(self.alpha) and self.alpha >= 0):
            raise WrongUse(
                f"an alpha of {self.alpha}",
                hint="give 0 or more, or leave it to cross-validation",
            )

        if not 0 <= self.seed <= MAX_RANDOM_SEED:
            raise WrongUse(
                f"a seed of {self.seed}",
                hint=f"give one from 0 to {MAX_RANDOM_SEED}",
            )
