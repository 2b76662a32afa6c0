"""The choice of built-in rubrics by what the labels prove of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import positives
from pollex.conversations.splits import block_ids
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.rubrics.learning.settings import TEN_A_LIST, LearnSettings
from pollex.rubrics.records import LIKELY, Member
from pollex.rubrics.rubric import TONE_KINDS, Rubric
from pollex.selection.multi_split import (
    MultiSplit,
    Narrowed,
    holds,
    multi_split,
    narrowed,
    one_each,
    one_sided,
    with_hints,
)

MOST = 15
"""Rubrics of a set where no budget is given: more add little."""


BESIDE = ("signal", "phrase", "turns", "rate")
"""Kinds of sources of the second list, which a model's rubrics have beside theirs."""


def kinds_of(rubrics: Sequence[Rubric]) -> Ints:
    """Return the number of each rubric's budget `[rubric]`.

    SAT and DSAT of the headline list, then of the second list.
    """
    return np.array(
        [(rubric.polarity == "dsat") + 2 * (rubric.source.partition(":")[0] in BESIDE) for rubric in rubrics],
        dtype=np.intp,
    )


@dataclass(frozen=True, eq=False)
class Candidates:
    """The rubrics and training conversations to choose from.

    Attributes:
        conversations: Conversations with an answer to any of the rubrics.
        rubrics: Rubrics answered on at least half of the training conversations.
        values: Signed terms of NetSAT `[conversation, rubric]`.
        answered: Which of them a judge gave `[conversation, rubric]`.
        unjudged: By id, why other rubrics are out, as JSON values.
    """

    conversations: list[Conversation]
    rubrics: list[Rubric]
    values: Floats
    answered: Bools
    unjudged: dict[str, Any]

    @property
    def labels(self) -> Bools:
        """True for positive `[conversation]`."""
        return positives(self.conversations)

    @property
    def kinds(self) -> Ints:
        """See `kinds_of`."""
        return kinds_of(self.rubrics)

    @property
    def ids(self) -> list[str]:
        """Ids of the rubrics."""
        return [rubric.id for rubric in self.rubrics]


@dataclass(frozen=True, eq=False)
class Weighed:
    """A pool with all that its choice rests on.

    Attributes:
        sat: Whether a rubric is one of satisfaction `[rubric]`.
        mined: Words that were found by looking at these labels, which can't prove them `[rubric]`.
        events: Those that tell of an event `[rubric]`.
        families: Name of each rubric's family.
        blocks: Number of each conversation's user or other unit `[conversation]`.
        limits: Rubrics of satisfaction and of dissatisfaction at most.
        most: Rubrics in all at most.
    """

    pool: Candidates
    sat: Bools
    mined: Bools
    events: Bools
    families: list[str]
    blocks: Ints
    limits: tuple[int, int]
    most: int
    policy: str
    seed: int
    _known: dict[bytes, tuple[MultiSplit, Narrowed]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, pool: Candidates, settings: LearnSettings, family_of: Callable[[str], str]) -> Weighed:
        """Lay out a pool; families are by the rubrics' sources."""
        rubrics = pool.rubrics
        return cls(
            pool,
            np.array([rubric.polarity == "sat" for rubric in rubrics]),
            np.array([rubric.source.partition(":")[0] in TONE_KINDS for rubric in rubrics]),
            np.array([rubric.source.startswith(("event:", "rate:")) for rubric in rubrics]),
            [family_of(rubric.source) for rubric in rubrics],
            block_ids(pool.conversations),
            (MOST, MOST) if settings.budget == TEN_A_LIST else (settings.budget[0], settings.budget[1]),
            MOST if settings.budget == TEN_A_LIST else settings.budget[0] + settings.budget[1],
            settings.policy,
            settings.seed,
        )

    def weigh(self, rows: Bools) -> tuple[MultiSplit, Narrowed]:
        """Say what the labels of some conversations prove, and which rubrics they leave to choose from.

        Args:
            rows: Which conversations of the pool `[conversation]`.
        """
        if (key := rows.tobytes()) not in self._known:
            pool, rng = self.pool, np.random.default_rng([self.seed, 9])
            values, up = pool.values[rows], pool.labels[rows]
            found = multi_split(values, up, self.sat, pool.ids, self.blocks[rows], rng, self.policy)
            found = MultiSplit(np.where(self.mined, 1.0, found.p), found.chosen)
            alone = one_each(np.ones(len(up), dtype=bool), self.blocks[rows], rng)
            leads = narrowed(values[alone], up[alone], self.sat, found.p, self.events, self.families, LIKELY)
            self._known[key] = found, leads
        return self._known[key]

    def order(self, rows: Bools, alpha: float, *, hints: bool) -> Ints:
        """Choose rubrics by some conversations: columns, the surest first, and one at least.

        Args:
            rows: As for `weigh`.
            hints: Add what is neither proven nor likely, chosen by the policy with this α.
        """
        pool, (_, found) = self.pool, self.weigh(rows)
        values, up = pool.values[rows], pool.labels[rows]
        order = found.base
        if hints or not len(order):
            order = with_hints(values, up, self.sat, pool.ids, found, alpha, len(pool.ids), self.policy)
        if not len(order):
            order = np.argsort(one_sided(holds(values), up, self.sat), kind="stable")[:1]
        return self._within_limits(order)

    def _within_limits(self, order: Ints) -> Ints:
        left = {True: self.limits[0], False: self.limits[1]}
        kept: list[int] = []
        for column in order.tolist():
            side = bool(self.sat[column])
            if left[side] and len(kept) < self.most:
                left[side] -= 1
                kept.append(column)
        return np.array(kept, dtype=np.intp)


def families_of(weighed: Weighed, found: Narrowed) -> dict[str, dict[str, Any]]:
    """Return what each rubric that leads a family mostly consists of, by its id, as JSON values."""
    pool, held = weighed.pool, holds(weighed.pool.values)
    often, told = held.sum(axis=0), {}
    for first, members in found.members.items():
        narrower = [one for one in members.tolist() if often[one] < often[first] and pool.rubrics[one].leads]
        others = [(int((held[:, first] & held[:, one]).sum()), one) for one in narrower]
        told[pool.ids[first]] = {
            "n": int(held[:, first].sum()),
            "members": [
                member_of(pool.rubrics[one], among).model_dump(mode="json")
                for among, one in sorted(others, reverse=True)
                if among
            ],
        }
    return told


def member_of(rubric: Rubric, among: int) -> Member:
    """Return a narrower form with its best quote."""
    return Member(id=rubric.id, text=rubric.text, among=among, quote=rubric.quotes[0] if rubric.quotes else None)
