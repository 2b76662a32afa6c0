"""Settings of a learning run."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from pollex.calibration.candidates import candidate
from pollex.errors import WrongUse
from pollex.selection.policies import DEFAULT, policy_named
from pollex.selection.pool import Budget

HIGHEST_SEED = 2**32 - 1
"""What scikit-learn takes."""

Method = Literal["rubicon", "spur"]

TEN_A_LIST = (10, 10, 10, 10)
"""The budget where none is given: ten SAT and ten DSAT rubrics in the headline list, and as many in the second."""


def budget_of(most: int | None) -> Budget:
    """Return the budget of a set with as many rubrics of each kind; None: that of either list."""
    return TEN_A_LIST if most is None else (most, most)


def held_out_share(given: float | None, *, free: bool) -> float:
    """Return the share of labels to hold out: the given one, else half, or none where choosing anew is free."""
    return given if given is not None else 0.0 if free else LearnSettings.test_fraction


@dataclass(frozen=True)
class LearnSettings:
    """Settings of a learning run.

    Attributes:
        test_fraction: Share of the labeled conversations that is held out of words and choice; 0 holds nothing out.
        budget: Maximum number of SAT and DSAT rubrics in the set; with two numbers more, in either of its two lists.
        mini_batch: Reasons a summarizer sees at once.
        method: `rubicon` writes a growing pool and chooses from it; `spur` revises one set of limited size in place.
        policy: How rubrics are chosen; a name of `selection.policies`.
        alpha: Weight of sharpness; None chooses it by cross-validation.
        probability: What gives the probability of a thumb up: `network`, which another model replaces that is better by
            more than a standard error; `best`; or the name of a model.
        also: Fields of other questions that people rated, separated by commas: where the labels are grades, the network
            learns these first, with the grades.
        stability: Whether to measure how often halves of the conversations choose each rubric.
        minimum: Conversations of each class that are needed to learn at all.
    """

    test_fraction: float = 0.5
    budget: Budget = TEN_A_LIST
    mini_batch: int = 20
    method: Method = "rubicon"
    policy: str = DEFAULT
    alpha: float | None = None
    probability: str = "network"
    also: str = ""
    seed: int = 0
    stability: bool = True
    minimum: int = 10

    @property
    def others_rated(self) -> list[str]:
        """Names of the fields in `also`."""
        return [name.strip() for name in self.also.split(",") if name.strip()]

    def __post_init__(self) -> None:
        """Refuse settings that can't be carried out, before any work is done.

        Raises:
            WrongUse: Says what, and what to give instead.
        """
        policy_named(self.policy)
        candidate(self.probability)
        if self.method not in get_args(Method):
            raise WrongUse(f"no method is called {self.method!r}", remedy=f"use one of {', '.join(get_args(Method))}")
        if not 0 <= self.test_fraction < 1:
            raise WrongUse(f"a test fraction of {self.test_fraction}", remedy="give one from 0 to less than 1")
        if min(self.budget) < 0 or max(self.budget) < 1:
            raise WrongUse(f"a budget of {max(self.budget)}", remedy="give 1 or more rubrics a kind")
        if self.mini_batch < 1:
            raise WrongUse(f"a mini-batch of {self.mini_batch}", remedy="give 1 or more reasons")
        if self.alpha is not None and not (math.isfinite(self.alpha) and self.alpha >= 0):
            raise WrongUse(f"an alpha of {self.alpha}", remedy="give 0 or more, or leave it to cross-validation")
        if not 0 <= self.seed <= HIGHEST_SEED:
            raise WrongUse(f"a seed of {self.seed}", remedy=f"give one from 0 to {HIGHEST_SEED}")
