"""Worlds of answers without texts: a pool of rubrics, thumbs that hang on some of them, and all that learning makes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.conversations.splits import assign_folds, number_dependent_blocks
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.rubrics.learning.crossfit import Candidates, WeighedPool
from pollex.rubrics.learning.settings import LearnSettings
from pollex.rubrics.rubric import Rubric
from pollex.selection.losses import compute_midpoint_of_class_means
from pollex.selection.multi_split import HALVING_ALPHA

FOLDS = 5
RUBRICS = 40
"""In the pool of a world, half of each side."""


@dataclass(frozen=True, eq=False)
class ArrayWorld:
    """A pool's answers with thumbs.

    Attributes:
        held: Where each rubric holds `[conversation, rubric]`.
        up: Thumbs up `[conversation]`.
        user: Number of each conversation's user `[conversation]`; None where each is alone.
    """

    held: Bools
    up: Bools
    user: Ints | None = None

    @property
    def sat(self) -> Bools:
        """Whether a rubric is one of satisfaction `[rubric]`: the second half."""
        return np.arange(self.held.shape[1]) >= self.held.shape[1] // 2

    @property
    def values(self) -> Floats:
        """Signed terms of NetSAT `[conversation, rubric]`."""
        return np.where(self.sat, 1.0, -1.0) * np.where(self.held, 10.0, 0.0)

    def conversations(self, *, grouped: bool) -> list[Conversation]:
        """Return a conversation without a story for each row, in its user's group if wanted."""
        labels = (Label.POSITIVE if up else Label.NEGATIVE for up in self.up)
        users: Sequence[int | None] = (
            [None] * len(self.up) if self.user is None else self.user.tolist()
        )
        return [
            Conversation(
                id=f"c{row}",
                turns=(Turn(role="user", content=f"c{row}"),),
                label=label,
                group=f"u{user}" if grouped and user is not None else None,
            )
            for row, (label, user) in enumerate(zip(labels, users, strict=True))
        ]

    def weighed(self, *, grouped: bool = False) -> WeighedPool:
        """Lay out the pool as `learn` does."""
        rubrics = [
            Rubric(
                id=f"r{column}",
                polarity="sat" if sat else "dsat",
                text=f"r{column}",
                source=f"event:e{column}",
            )
            for column, sat in enumerate(self.sat.tolist())
        ]
        answered = np.ones(self.held.shape, dtype=bool)
        pool = Candidates(self.conversations(grouped=grouped), rubrics, self.values, answered, {})
        return WeighedPool.of(pool, LearnSettings(), lambda source: source)


@dataclass(frozen=True, eq=False)
class LearnedArrays:
    """What is learned of a world.

    Attributes:
        p: Adjusted p-value of each rubric `[rubric]`.
        order: Columns of the set.
        above: NetSAT less θ of each conversation, by a choice that did not see it `[conversation]`.
        known: Where a choice that did not see a conversation has a rubric `[conversation, rubric]`.
        blocks: Number of each conversation's user or itself `[conversation]`.
    """

    p: Floats
    order: Ints
    above: Floats
    known: Bools
    blocks: Ints


def learned(world: ArrayWorld, *, grouped: bool = False) -> LearnedArrays:
    """Choose by all conversations, and without each fifth."""
    weighed = world.weighed(grouped=grouped)
    every = np.ones(len(world.up), dtype=bool)
    conversations = weighed.pool.conversations
    above = np.zeros(len(world.up))
    known = np.zeros(world.held.shape, dtype=bool)
    dealt = assign_folds(conversations, FOLDS, 0)
    for number in range(FOLDS):
        out = dealt == number
        order = weighed.order(~out, HALVING_ALPHA, hints=True)
        netsat = world.values[:, order].sum(axis=1)
        above[out] = netsat[out] - compute_midpoint_of_class_means(netsat[~out], world.up[~out])
        known[np.ix_(out, order)] = True
    order = weighed.order(every, HALVING_ALPHA, hints=True)
    return LearnedArrays(
        weighed.weigh(every)[0].p, order, above, known, number_dependent_blocks(conversations)
    )
