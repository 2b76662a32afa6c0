"""Two runs compared text by text: which of their scores may be compared, and how far they differ.

Each text counts once, whatever its id is in either run. The runs may have two rubric sets: then
NetSAT, which is on two scales, is not subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeVar

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints, assign_numbers_to_names
from pollex.measures.classification import estimate_auc_difference
from pollex.measures.intervals import Figure

POINTS = 4000
"""Pairs that intervals are computed from, drawn at random where there are more."""
RESAMPLES = 400


class Scored(Protocol):
    """Scored texts of which some may have taught the rubrics.

    Attributes:
        folded: Hashes of the texts that a run learned from: answered without their own fold,
            unlike all others.
        measured: Hashes of those among them whose rubrics were chosen without that fold, too:
            these scores are as those of new texts.
    """

    @property
    def folded(self) -> frozenset[str]: ...

    @property
    def measured(self) -> frozenset[str]: ...

    def scored_by(self, other: Self, texts: frozenset[str]) -> Self:
        """Return them with another's scores of some texts, of those that both have."""


class ScoredRun(Scored, Protocol):
    """The columns of a run, an entry a conversation.

    Attributes:
        label: The thumb of the log: 1, 0, or −1 without one.
        predicted: The label by the rubrics: 1, 0, or −1 without one.
        netsat: NaN without a score; so is `probability`.
        unseen: Whether the scores are of rubrics that were learned without the conversation.
    """

    @property
    def ids(self) -> list[str]: ...

    @property
    def hashes(self) -> list[str]: ...

    @property
    def groups(self) -> list[str | None]: ...

    @property
    def label(self) -> Ints: ...

    @property
    def predicted(self) -> Ints: ...

    @property
    def netsat(self) -> Floats: ...

    @property
    def probability(self) -> Floats: ...

    @property
    def unseen(self) -> Bools: ...


Of = TypeVar("Of", bound=Scored)


def share_folds(a: Of, b: Of) -> tuple[Of, Of, frozenset[str]]:
    """Return both with the scores by folds of texts that only one learned from, and the texts that stay unlike.

    What the other side scored by the whole set is flattered there, so that it takes the scores of
    rubrics that did not see the text. Where there are none, one side's answers are without the
    text's own fold, and the other's aren't: that is not to be compared.
    """
    unlike = (a.folded ^ b.folded) - a.measured - b.measured
    first = a.scored_by(b, b.measured - a.folded)
    second = b.scored_by(a, a.measured - b.folded)
    return first, second, unlike


def match_rows(
    hashes: Sequence[str], others: Sequence[str], texts: frozenset[str]
) -> tuple[list[int], list[int]]:
    """Return the rows of some texts that both sides have, here and there."""
    row_there = {text: row for row, text in enumerate(others) if text in texts}
    rows = []
    for row, text in enumerate(hashes):
        if text in row_there:
            rows.append(row)

    return rows, [row_there[hashes[row]] for row in rows]


@dataclass(frozen=True, eq=False)
class PairedTexts:
    """Texts that two runs share, a row each; `only` counts the others.

    Attributes:
        rows: Of each run's columns `[pair]`.
        netsat: Of each run; NaN without a score.
        probability: Likewise.
        flips: Pairs whose label differs, the largest change first.
        unseen: Whether neither rubric set was learned from the text `[pair]`.
        units: The user, or the conversation, of each pair `[pair]`.
        by_folds: Shared texts that the set was learned from: both sides have the scores of the
            folds.
        left_out: Shared texts that one run was learned from, answered without their own fold, and
            the other wasn't.
    """

    ids: list[tuple[str, str]]
    rows: tuple[Ints, Ints]
    netsat: tuple[Floats, Floats]
    probability: tuple[Floats, Floats]
    label: Ints
    flips: Ints
    unseen: Bools
    units: Ints
    only: tuple[int, int]
    by_folds: int
    left_out: int

    @property
    def scored(self) -> int:
        """How many have a score in both."""
        return len(self.scored_rows)

    @property
    def scored_rows(self) -> Ints:
        """The pairs with a score in both."""
        return np.flatnonzero(~np.isnan(self.netsat[0]) & ~np.isnan(self.netsat[1]))

    @property
    def labeled_unseen(self) -> Ints:
        """The pairs with a thumb and two scores that neither rubric set was learned from."""
        rows = self.scored_rows
        return rows[(self.label[rows] >= 0) & self.unseen[rows]]


def pair_texts(a: ScoredRun, b: ScoredRun) -> PairedTexts:
    """Pair two runs' conversations by their text, each once; answers by folds alone meet only others."""
    measured = a.measured | b.measured
    a, b, unlike = share_folds(a, b)
    # reversed, so that of equal texts the first row stays
    first = {text: row for row, text in reversed(list(enumerate(a.hashes)))}
    second = {text: row for row, text in reversed(list(enumerate(b.hashes)))}
    shared = []
    for text in first:
        if text in second:
            shared.append(text)

    both = []
    for text in shared:
        if text not in unlike:
            both.append((first[text], second[text]))

    # rows of both runs `[pair, run]`
    rows = np.array(both, dtype=np.int64).reshape(len(both), 2)
    first_rows = rows[:, 0]
    second_rows = rows[:, 1]
    netsat = a.netsat[first_rows], b.netsat[second_rows]
    # −1 is no label, and doesn't count as a change
    differ = (
        (a.predicted[first_rows] >= 0)
        & (b.predicted[second_rows] >= 0)
        & (a.predicted[first_rows] != b.predicted[second_rows])
    )
    flips = np.flatnonzero(differ)
    order = np.argsort(-np.abs(netsat[1][flips] - netsat[0][flips]), kind="stable")

    # conversations of one user depend on each other, and count as one unit
    units = []
    for row in first_rows.tolist():
        units.append(("user", a.groups[row]) if a.groups[row] is not None else ("id", a.ids[row]))

    return PairedTexts(
        ids=[(a.ids[i], b.ids[j]) for i, j in both],
        rows=(first_rows, second_rows),
        netsat=netsat,
        probability=(a.probability[first_rows], b.probability[second_rows]),
        label=a.label[first_rows],
        flips=flips[order],
        unseen=a.unseen[first_rows] & b.unseen[second_rows],
        units=assign_numbers_to_names(units),
        only=(len(first) - len(shared), len(second) - len(shared)),
        by_folds=len(measured & {*shared}),
        left_out=len(shared) - len(both),
    )


def estimate_differences(pairs: PairedTexts, *, one_scale: bool = True) -> dict[str, Figure]:
    """Compute the figures of the second run minus those of the first on the same texts, with intervals.

    Args:
        one_scale: Whether one rubric set scored both: NetSAT of two sets is on two scales, and is
            not subtracted.
    """
    # SciPy comes with it, and takes half a second
    from pollex.measures.share import estimate_mean_differences

    rng = np.random.default_rng(0)
    # pairs with a score on both sides; of very many a sample
    scored_rows = pairs.scored_rows
    if len(scored_rows) > POINTS:
        scored_rows = np.sort(rng.choice(scored_rows, POINTS, replace=False))

    # NetSAT of two sets can't be subtracted, probabilities can
    both = ({"NetSAT": pairs.netsat} if one_scale else {}) | {"P(up)": pairs.probability}
    # all values of the first side, then all of the second; the mask tells them apart
    second = np.repeat([False, True], len(scored_rows))
    values = {}
    for name, sides in both.items():
        values[name] = np.concatenate([side[scored_rows] for side in sides])

    # units are numbered without gaps among the pairs that were drawn
    unit = assign_numbers_to_names(pairs.units[scored_rows].tolist())
    means = estimate_mean_differences(values, second, np.tile(unit, 2), rng)
    differences = {}
    for name, figure in means.items():
        differences[name] = replace(figure, n=len(scored_rows))

    # AUC needs thumbs up and down that neither set was learned from
    labeled_rows = np.intersect1d(scored_rows, pairs.labeled_unseen)
    up = pairs.label[labeled_rows] == 1
    if up.any() and not up.all():
        differences["AUC"] = estimate_auc_difference(
            pairs.netsat[1][labeled_rows],
            pairs.netsat[0][labeled_rows],
            up,
            rng,
            RESAMPLES,
        )

    return differences
