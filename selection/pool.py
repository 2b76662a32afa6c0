"""A selection problem, its solution, and the stepwise walk that policies share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import require_both_classes
from pollex.selection.losses import (
    SCORE_TIE_TOLERANCE,
    LossTerms,
    compute_losses_with_each_candidate,
    split_rubric_values_by_class,
)
from pollex.selection.netsat import sum_rubric_values

MaxRubricsBySide = tuple[int, ...]
"""How many SAT and how many DSAT rubrics to choose at most; for a second list of rubrics two numbers more."""


@dataclass(frozen=True)
class Step:
    """One rubric chosen, and the terms of the set with it in.

    Attributes:
        index: Column of the rubric.
        loss: `−LC/(10·|R|) + α·LS`.
        correctness: LC, in score units.
        sharpness: LS.
    """

    index: int
    loss: float
    correctness: float
    sharpness: float


@dataclass(frozen=True)
class Drop:
    """One rubric not chosen, and why.

    Attributes:
        index: Column of the rubric.
        loss: Of the set with it in, at the last step at which its kind was open; None when its kind
            never was.
        beaten_by: Column of the rubric that was chosen at that step.
    """

    index: int
    loss: float | None
    beaten_by: int | None


@dataclass(frozen=True)
class Selection:
    """The rubrics chosen, in order, and those dropped, in the order of the columns."""

    steps: tuple[Step, ...]
    drops: tuple[Drop, ...]

    @property
    def chosen(self) -> Ints:
        """Columns in the order of choice `[step]`."""
        return np.array([step.index for step in self.steps], dtype=np.intp)

    def scores(self, values: Floats) -> Floats:
        """NetSAT of conversations: `[conversation, rubric]` of the whole pool to `[conversation]`."""
        return sum_rubric_values(np.asarray(values, float)[:, np.sort(self.chosen)])


@dataclass
class Pool:
    """Rubrics to choose from, judged on labeled conversations.

    Attributes:
        evals: Signed evals of the positive and of the negative conversations, each `[rubric,
            conversation]`.
        kinds: The number of each rubric's budget `[rubric]`: 0 for SAT, 1 for DSAT, 2 and 3 for
            those of a second list.
        rank: Place of each rubric by id `[rubric]`: the smaller one wins a tie.
    """

    evals: tuple[Floats, Floats]
    kinds: Ints
    rank: Ints
    budget: MaxRubricsBySide
    _known: dict[frozenset[int], LossTerms] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        values: Floats,
        positive: Bools,
        sat: Bools | Ints,
        ids: Sequence[str],
        budget: MaxRubricsBySide,
    ) -> Pool:
        """Lay the problem out for the losses.

        Args:
            values: Signed evals `[conversation, rubric]`.
            positive: Labels `[conversation]`.
            sat: Kinds `[rubric]`: true for SAT, or the number of each rubric's budget.
            ids: Of the rubrics.
            budget: One number a kind; more than there are is fine.

        Raises:
            BadLabels: All labels are alike.
        """
        values = np.asarray(values, float)
        positive = np.asarray(positive, bool)
        kind_of_rubric = np.asarray(sat)
        if kind_of_rubric.dtype == bool:
            kinds = np.where(kind_of_rubric, 0, 1)
        else:
            kinds = kind_of_rubric.astype(np.intp)

        require_both_classes(positive)
        rank = np.argsort(sorted(range(len(ids)), key=ids.__getitem__))
        return cls(split_rubric_values_by_class(values, positive), kinds, rank, budget)

    def open(self, chosen: frozenset[int]) -> Ints:
        """Return columns that may be added: not chosen, and within their kind's budget."""
        # kinds whose budget is not used up
        in_set = np.zeros(len(self.kinds), dtype=bool)
        in_set[list(chosen)] = True
        has_room = np.bincount(self.kinds[in_set], minlength=len(self.budget)) < np.array(
            self.budget
        )
        return np.flatnonzero(~in_set & has_room[self.kinds])

    def terms(self, chosen: frozenset[int]) -> LossTerms:
        """Compute LC and LS of `chosen` with each open rubric added; cached for all α."""
        if chosen not in self._known:
            rows = sorted(chosen)
            base = (
                sum_rubric_values(self.evals[0][rows].T),
                sum_rubric_values(self.evals[1][rows].T),
            )
            self._known[chosen] = compute_losses_with_each_candidate(
                base,
                self.evals,
                self.open(chosen),
            )

        return self._known[chosen]

    def losses(self, chosen: frozenset[int], alpha: float) -> Floats:
        """Compute `−LC/(10·|R|) + α·LS` of `chosen` with each open rubric added `[candidate]`."""
        return self.terms(chosen).loss(alpha, len(chosen) + 1)

    def cheapest(self, candidates: Ints, costs: Floats) -> int:
        """Return the position of the cheapest candidate; ties go to the smallest id."""
        ties = np.flatnonzero(costs <= costs.min() + SCORE_TIE_TOLERANCE)
        return int(ties[np.argmin(self.rank[candidates[ties]])])


def choose_cheapest_rubrics_step_by_step(
    pool: Pool, costs: Callable[[frozenset[int]], Floats]
) -> Ints:
    """Add the cheapest open rubric until the budgets are used: columns `[step]`.

    Args:
        costs: Of the open rubrics `[candidate]`, given those chosen so far.
    """
    steps: list[int] = []
    while len(candidates := pool.open(chosen := frozenset(steps))):
        steps.append(int(candidates[pool.cheapest(candidates, costs(chosen))]))
    return np.array(steps, dtype=np.intp)


def choose_rubrics_of_most_worth(pool: Pool, worth: Floats) -> Ints:
    """Return the rubrics of most worth `[rubric]`, each by itself: columns `[step]`."""
    return choose_cheapest_rubrics_step_by_step(pool, lambda chosen: -worth[pool.open(chosen)])


def compute_losses_along_selection(pool: Pool, alpha: float, order: Ints) -> Selection:
    """Return losses at every step of rubrics in this order, and of the others."""
    steps: list[Step] = []
    # the last step at which each rubric was open, and the loss that it would have had
    last_loss = np.zeros(len(pool.kinds))
    last_step = np.full(len(pool.kinds), -1)
    for number, index in enumerate(order.tolist()):
        chosen = frozenset(order[:number].tolist())
        candidates = pool.open(chosen)
        terms = pool.terms(chosen)
        losses = pool.losses(chosen, alpha)
        last_loss[candidates] = losses
        last_step[candidates] = number
        at = int(np.searchsorted(candidates, index))
        steps.append(
            Step(
                index,
                float(losses[at]),
                float(terms.correctness[at]),
                float(terms.sharpness[at]),
            )
        )

    # the others, beside what was chosen at that step
    drops = []
    for index in sorted({*range(len(pool.kinds))} - {*order.tolist()}):
        step = last_step[index]
        drops.append(
            Drop(index, None, None)
            if step < 0
            else Drop(index, float(last_loss[index]), steps[step].index)
        )

    return Selection(tuple(steps), tuple(drops))
