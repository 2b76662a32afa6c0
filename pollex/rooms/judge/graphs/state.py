"""What a run of `judge` came to: its votes, and the rule with the τ that was fitted."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.splits import assign_folds, number_dependent_blocks
from pollex.errors import BadLabels
from pollex.rooms.judge.agents.votes import (
    RatingRule,
    RatingTask,
    VoteTally,
    compute_diversity_entropy,
)
from pollex.rooms.judge.selection.consensus import (
    FittedTau,
    TauSplit,
    compute_entropies,
    crossfit_tau,
    find_modes,
    fit_tau,
)
from pollex.rooms.judge.store.votes import read_people_so_far, read_votes_so_far
from pollex.store.store import Store

TAU_FOLDS, TAU_FOLDS_SEED = 10, 0
"""To tell what a fitted τ does to thumbs that it was not fitted to."""


@dataclass(frozen=True)
class RunTally:
    """What the votes of a run come to, and people's answers: a result of what the store has.

    Attributes:
        run: Its id.
        rule: The rule of verdicts; with a wanted precision only known when all runs are in.
        tallies: By conversation.
        people: By conversation, the option that a person chose.
        fitted: Performance of τ on the thumbs that it was fitted to.
        unseen: Performance of τ on thumbs that it was not fitted to; None if there are too few.
    """

    run: str
    task: RatingTask
    rule: RatingRule
    tallies: Mapping[str, VoteTally]
    people: Mapping[str, str]
    fitted: FittedTau | None = None
    unseen: TauSplit | None = None

    @cached_property
    def waiting(self) -> list[str]:
        """List undecided conversations that wait for people: highest entropy first, without votes last."""
        left = []
        for id_, tally in self.tallies.items():
            if tally.scorable and id_ not in self.people and self.rule.chosen(tally.votes) is None:
                left.append(id_)
        return sorted(left, key=lambda id_: -_compute_entropy(self.tallies[id_].votes))

    def counts(self, ids: Iterable[str]) -> dict[str, int]:
        """Count conversations by result: `rated`, `by a person`, and the reasons of NONE."""
        counts: Counter[str] = Counter()
        for id_ in ids:
            # a person's answer comes first: it stands whatever the runs say
            tally = self.tallies[id_]
            if id_ in self.people:
                counts["by a person"] += 1
            elif not tally.scorable:
                counts["not_scorable"] += 1
            else:
                counts[self.rule.refusal(tally.votes, self.rule.runs - tally.asked) or "rated"] += 1

        return dict(counts)


def count_votes_of_run(
    store: Store,
    run: str,
    task: RatingTask,
    conversations: Iterable[Conversation],
) -> RunTally:
    """Count the votes that a run has, and fit τ to thumbs if a precision is wanted.

    Args:
        conversations: Those of the run; read only for the thumbs.
    """
    tallies, _ = read_votes_so_far(store, run, task, ())
    tallied = RunTally(
        run,
        task,
        task.rule,
        tallies,
        read_people_so_far(store, run, task),
    )
    if task.precision is None:
        return tallied

    # With fewer runs than the minimum nothing passes, whatever τ is.
    used = []
    for c in conversations:
        if (
            c.label is not Label.NONE
            and c.id in tallies
            and sum(tallies[c.id].votes) >= task.rule.minimum
        ):
            used.append(c)

    # [conversation, option]; reshaped so that no thumbs at all give an empty array of 2 columns
    votes = np.array([tallies[c.id].votes for c in used], dtype=np.int64).reshape(
        len(used),
        2,
    )
    # 1 for the second option: a thumb down
    right = np.array([c.label is Label.NEGATIVE for c in used], dtype=np.int64)
    entropy = compute_entropies(votes)
    mode = find_modes(votes)
    # conversations that belong together count as one in intervals
    blocks = number_dependent_blocks(used)
    fitted = fit_tau(entropy, mode, right, task.precision, blocks)
    tallied = replace(
        tallied,
        fitted=fitted,
        rule=replace(task.rule, tau=fitted.tau),
    )
    # no more folds than thumbs of the rarer kind
    k = min(TAU_FOLDS, *np.bincount(right, minlength=2).tolist())
    if k >= 2:
        with suppress(BadLabels):  # too few groups of conversations that belong together
            dealt = assign_folds(used, k, TAU_FOLDS_SEED)
            tallied = replace(
                tallied,
                unseen=crossfit_tau(entropy, mode, right, task.precision, dealt, blocks),
            )

    return tallied


def _compute_entropy(votes: Sequence[int]) -> float:
    if sum(votes):
        return compute_diversity_entropy(votes)
    return -1.0
