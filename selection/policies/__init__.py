"""The selection policies, one module each with `choose(pool, α, generator)`.

A new module in this folder is a new policy, under its own name. One that has a use for α says so by
`ALPHAS`, the values that cross-validation tries; the others are the same for every α.
"""

import pkgutil
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

import numpy as np

from pollex.errors import WrongUse
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.selection.pool import MaxRubricsBySide, Pool, Selection, compute_losses_along_selection

DEFAULT_SELECTION_POLICY_NAME = "greedy"
"""RUBICON's own: `benchmarks/rubicon_tables.py` has all of them side by side."""

UNUSED_ALPHA_GRID = (0.0,)
"""The grid of a policy without a use for α."""


class Policy(Protocol):
    """Chooses rubrics up to both budgets: their columns, in the order of choice `[step]`.

    Ties go to the smaller id, the same generator gives the same choice.
    """

    def __call__(
        self,
        pool: Pool,
        alpha: float,
        rng: np.random.Generator,
    ) -> Ints: ...


_POLICY_MODULES = {
    module.name: import_module(f"{__name__}.{module.name}")
    for module in pkgutil.iter_modules(__path__)
}

SELECTION_POLICY_BY_NAME: dict[str, Policy] = {
    name: cast(Policy, module.choose) for name, module in _POLICY_MODULES.items()
}

CROSS_VALIDATED_ALPHAS_BY_POLICY: dict[str, tuple[float, ...]] = {
    name: getattr(module, "ALPHAS", UNUSED_ALPHA_GRID) for name, module in _POLICY_MODULES.items()
}
"""What cross-validation tries, by policy."""


def get_selection_policy(name: str) -> Policy:
    """Return the policy of that name.

    Raises:
        WrongUse: There is none.
    """
    if name not in SELECTION_POLICY_BY_NAME:
        raise WrongUse(
            f"no selection policy is called {name!r}",
            hint=f"use one of {', '.join(sorted(SELECTION_POLICY_BY_NAME))}",
        )

    return SELECTION_POLICY_BY_NAME[name]


def select_rubrics(
    values: Floats,
    positive: Bools,
    sat: Bools | Ints,
    ids: Sequence[str],
    budget: MaxRubricsBySide,
    alpha: float,
    rng: np.random.Generator,
    policy: str = DEFAULT_SELECTION_POLICY_NAME,
) -> Selection:
    """Choose rubrics from a pool.

    Args:
        values: Signed evals `[conversation, rubric]`.
        positive: Labels `[conversation]`.
        sat: Kinds `[rubric]`: true for SAT, or the number of each rubric's budget.
        ids: Of the rubrics.
        budget: One number a kind; more than there are is fine.
        alpha: Weight of sharpness, for the policies that have one; losses are told with it,
            whatever the policy.

    Raises:
        BadLabels: All labels are alike.
        WrongUse: There is no such policy.
    """
    choose = get_selection_policy(policy)
    pool = Pool.of(values, positive, sat, ids, budget)
    return compute_losses_along_selection(pool, alpha, choose(pool, alpha, rng))
