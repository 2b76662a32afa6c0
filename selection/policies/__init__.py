"""How to choose rubrics. One module a policy: its function `select` takes a pool, α and a generator.

A new module in this folder is a new policy, under its own name.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

import numpy as np

from pollex.errors import WrongUse
from pollex.selection.losses import Bools, Floats
from pollex.selection.pool import Budget, Pool, Selection


class Policy(Protocol):
    """Chooses rubrics up to both budgets; ties go to the smaller id, the same generator gives the same choice."""

    def __call__(self, pool: Pool, alpha: float, rng: np.random.Generator) -> Selection: ...


POLICIES: dict[str, Policy] = {
    module.name: cast(Policy, import_module(f"{__name__}.{module.name}").select)
    for module in pkgutil.iter_modules(__path__)
}


def policy_named(name: str) -> Policy:
    """The policy of that name.

    Raises:
        WrongUse: There is none.
    """
    if name not in POLICIES:
        raise WrongUse(f"no selection policy is called {name!r}", remedy=f"use one of {', '.join(sorted(POLICIES))}")
    return POLICIES[name]


def select(
    values: Floats,
    positive: Bools,
    sat: Bools,
    ids: Sequence[str],
    budget: Budget,
    alpha: float,
    rng: np.random.Generator,
    policy: str = "greedy",
) -> Selection:
    """Choose rubrics from a pool.

    Args:
        values: Signed evals `[conversation, rubric]`.
        positive: Labels `[conversation]`.
        sat: Kinds `[rubric]`.
        ids: Of the rubrics.
        budget: SAT and DSAT; more than there are is fine.
        alpha: Weight of sharpness; only `greedy` chooses by it, all report losses with it.

    Raises:
        BadLabels: All labels are alike.
        BadRubrics: Shapes disagree, ids repeat, or a value isn't a number.
        WrongUse: There is no such policy.
    """
    return policy_named(policy)(Pool.of(values, positive, sat, ids, budget), alpha, rng)
