"""The state of a run of `judge`: votes so far, and the rule with the τ that was fitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from pollex.agents.task import Tally, Task
from pollex.agents.votes import Rule, diversity_entropy
from pollex.conversations.splits import block_ids, folds
from pollex.errors import BadLabels
from pollex.graphs.context import ConversationIndex
from pollex.selection.consensus import Filtered, FittedTau, crossfitted, entropies, fitted_tau, modes

FOLDS, SEED = 10, 0
"""To tell what a fitted τ does to thumbs that it was not fitted to."""


@dataclass(frozen=True)
class Judged:
    """The result of a run of `judge`; `verdicts_of` reads the verdicts.

    Attributes:
        counts: Conversations by result: `rated`, `by a person`, and the reasons of NONE.
        waiting: How many wait for people.
        asked: Runs asked, of `planned` ones: the others were saved by stopping early.
    """

    run: str
    task: Task
    rule: Rule
    fitted: FittedTau | None
    unseen: Filtered | None
    counts: dict[str, int]
    waiting: int
    asked: int
    planned: int


@dataclass
class JudgeRunState:
    """The state of a run of `judge`.

    Attributes:
        rule: The rule of verdicts; with a wanted precision only known when all runs are in.
        fitted: Performance of τ on the thumbs that it was fitted to.
        unseen: Performance of τ on thumbs that it was not fitted to; None if there are too few.
        tallies: By conversation.
        people: By conversation, the option that a person chose.
    """

    rule: Rule
    fitted: FittedTau | None = None
    unseen: Filtered | None = None
    tallies: dict[str, Tally] = field(default_factory=dict)
    people: dict[str, str] = field(default_factory=dict)

    def waiting(self) -> list[str]:
        """List undecided conversations that wait for people: highest entropy first, without votes last."""
        left = [
            id_
            for id_, tally in self.tallies.items()
            if tally.scorable and id_ not in self.people and self.rule.chosen(tally.votes) is None
        ]
        return sorted(left, key=lambda id_: -_entropy(self.tallies[id_].votes))

    def counts(self, ids: Iterable[str]) -> dict[str, int]:
        """Count conversations by result: `rated`, `by a person`, and the reasons of NONE."""
        found: Counter[str] = Counter()
        for id_ in ids:
            tally = self.tallies[id_]
            if id_ in self.people:
                found["by a person"] += 1
            elif not tally.scorable:
                found["not_scorable"] += 1
            else:
                found[self.rule.refusal(tally.votes, self.rule.runs - tally.asked) or "rated"] += 1
        return dict(found)


def fit_to_thumbs(work: JudgeRunState, shelf: ConversationIndex, truth: Mapping[str, int], precision: float) -> None:
    """Fit the rule's τ to a wanted precision on thumbs.

    Args:
        truth: By labeled conversation, index of the option that its thumb stands for.
    """
    # With fewer runs than the minimum nothing passes, whatever τ is.
    used = [id_ for id_ in truth if sum(work.tallies[id_].votes) >= work.rule.minimum]
    votes = np.array([work.tallies[id_].votes for id_ in used], dtype=np.int64).reshape(len(used), 2)
    right = np.array([truth[id_] for id_ in used], dtype=np.int64)
    entropy, mode = entropies(votes), modes(votes)
    labelled = [shelf[id_] for id_ in used]
    blocks = block_ids(labelled)
    work.fitted = fitted_tau(entropy, mode, right, precision, blocks)
    work.rule = replace(work.rule, tau=work.fitted.tau)
    k = min(FOLDS, *np.bincount(right, minlength=2).tolist())
    if k < 2:
        return
    with suppress(BadLabels):  # too few groups of conversations that belong together
        dealt = folds(labelled, k, SEED)
        work.unseen = crossfitted(entropy, mode, right, precision, dealt, blocks)


def _entropy(votes: Sequence[int]) -> float:
    return diversity_entropy(votes) if sum(votes) else -1.0
