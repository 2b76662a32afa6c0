"""Which words go along with the thumbs: mined anew on one half of the conversations, tested on the other.

Words that were found by looking at all labels can't be proven by the same labels: of twenty
thousand phrases some differ by chance. So each halving looks for its own, and those that keep
coming and hold on the other half are proven.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pollex.measures.arrays import Bools, Floats, Ints
from pollex.selection.multi_split import (
    HALVING_COUNT,
    combine_p_values_of_halvings,
    compute_fisher_p_values_of_rubrics,
    draw_random_halvings,
    keep_one_conversation_per_block,
)

MIN_Z_OF_PICKED_PHRASES = 2.5
"""Words are picked on one half from this z on."""
MAX_PICKED_PHRASES = 8
MIN_CONVERSATIONS_OF_PHRASE, MIN_SHARE_OF_PHRASE = 4, 0.03
"""Conversations that have to have a phrase, on the half that picks, as a number and as a share."""
MIN_OVERLAP_OF_EQUIVALENT_PHRASES = 0.5
"""Overlap of conversations from which on two phrases are one finding."""
MIN_CLARITY_SHARE_OF_LONGER_PHRASE = 0.8


@dataclass(frozen=True)
class LogPhrases:
    """Phrases that often occur, and where.

    Attributes:
        sources: Of each phrase, as rubrics have it.
        present: Which conversations have it, sparse `[conversation, phrase]`.
    """

    sources: list[str]
    present: Any

    def at(self, rows: Ints) -> LogPhrases:
        """Return the words of some conversations, in their order."""
        return LogPhrases(self.sources, self.present[rows])

    def proofs(
        self,
        up: Bools,
        blocks: Ints,
        rng: np.random.Generator,
    ) -> dict[tuple[str, bool], PhraseProof]:
        """Say what the labels prove of each phrase that any half picks, by its source and whether it is a good sign.

        Args:
            up: Thumbs up `[conversation]`.
            blocks: Number of each conversation's user or other unit `[conversation]`.
        """
        tested: dict[tuple[int, bool], Floats] = {}
        if not self.sources or up.all() or not up.any():
            return {}

        # words are picked on one half, and tested on the other
        for number, choosing in enumerate(draw_random_halvings(up, blocks, rng)):
            picked = choose_phrases_differing_between_classes(self.present[choosing], up[choosing])
            if not picked:
                continue
            columns = [column for column, _ in picked]
            sides = np.array([sat for _, sat in picked])
            # one conversation of each user, as exact p-values need
            other = keep_one_conversation_per_block(~choosing, blocks, rng)
            held = self.present[other][:, columns].toarray().astype(bool)
            # adjusted for all that this half picked; a half that didn't pick it counts as 1
            for key, p in zip(
                picked,
                compute_fisher_p_values_of_rubrics(held, up[other], sides).tolist(),
                strict=True,
            ):
                tested.setdefault(key, np.ones(HALVING_COUNT))[number] = min(
                    1.0,
                    p * len(picked),
                )

        if not tested:
            return {}

        ps = combine_p_values_of_halvings(np.stack(list(tested.values()), axis=1))
        proofs: dict[tuple[str, bool], PhraseProof] = {}
        for ((column, sat), p_values), p in zip(tested.items(), ps.tolist(), strict=True):
            proofs[self.sources[column], sat] = PhraseProof(
                float(p),
                float((p_values < 1).mean()),
            )

        return proofs


@dataclass(frozen=True)
class PhraseProof:
    """What halvings say of a phrase.

    Attributes:
        p: Adjusted for all that were picked, and for all halvings.
        chosen: Share of the halvings that picked it.
    """

    p: float
    chosen: float


NO_PHRASE_PROOF = PhraseProof(1.0, 0.0)


def choose_phrases_differing_between_classes(present: Any, up: Bools) -> list[tuple[int, bool]]:
    """Pick the phrases that differ most between the classes: columns of `present`, and whether each is a good sign.

    Of phrases of the same conversations that are nearly as clear, the one that most conversations
    have: halves then pick the same.
    """
    counts = np.asarray(present.sum(axis=0), dtype=np.float64).ravel()
    z = compute_z_of_class_difference(present, up)
    # a phrase of few conversations is never picked
    z[counts < max(MIN_CONVERSATIONS_OF_PHRASE, MIN_SHARE_OF_PHRASE * len(up))] = 0.0
    order = np.argsort(-np.abs(z), kind="stable")
    clear = order[np.abs(z[order]) >= MIN_Z_OF_PICKED_PHRASES]
    by_phrase = present.tocsc().astype(np.float64)
    used = np.zeros(present.shape[1], dtype=bool)
    picked: list[tuple[int, bool]] = []
    # the clearest phrase first
    for first in clear.tolist():
        if len(picked) == MAX_PICKED_PHRASES:
            break
        if used[first]:
            continue
        # phrases that occur in much the same conversations
        near = clear[
            compute_jaccard_overlaps_of_phrase(by_phrase, counts, first, clear)
            >= MIN_OVERLAP_OF_EQUIVALENT_PHRASES
        ]
        same = near[
            (z[near] * np.sign(z[first]) >= MIN_CLARITY_SHARE_OF_LONGER_PHRASE * abs(z[first]))
            & ~used[near]
        ]
        best = max(same.tolist(), key=lambda phrase: (counts[phrase], -phrase))
        # neighbours are used up with it, and are no finding of their own
        used[near] = True
        used[
            clear[
                compute_jaccard_overlaps_of_phrase(by_phrase, counts, best, clear)
                >= MIN_OVERLAP_OF_EQUIVALENT_PHRASES
            ]
        ] = True
        picked.append((best, bool(z[best] > 0)))

    return picked


def compute_jaccard_overlaps_of_phrase(
    present: Any,
    counts: Floats,
    column: int,
    others: Ints,
) -> Floats:
    """Compute Jaccard of a phrase's conversations with those of others `[other]`."""
    in_phrase = present[:, [column]].toarray().ravel()
    both = np.asarray(in_phrase @ present[:, others], dtype=np.float64).ravel()
    return np.asarray(both / np.maximum(1.0, counts[column] + counts[others] - both))


def compute_z_of_class_difference(present: Any, positive: Bools) -> Floats:
    """Compute z of the difference between the classes in log-odds of presence [conversation, thing].

    Half a conversation is added to each cell. Source: Haldane 1956,
    doi:10.1111/j.1469-1809.1955.tb01285.x.
    """
    # conversations with and without the phrase, by class
    yes_good, yes_bad = (side.astype(np.float64) @ present + 0.5 for side in (positive, ~positive))
    no_good = positive.sum() + 1 - yes_good
    no_bad = (~positive).sum() + 1 - yes_bad
    odds = np.log(yes_good / no_good) - np.log(yes_bad / no_bad)
    return np.asarray(odds / np.sqrt(1 / yes_good + 1 / yes_bad + 1 / no_good + 1 / no_bad))


def list_phrase_sources(party: str, phrases: Sequence[str]) -> list[str]:
    """Return the sources of phrases of one party."""
    return [f"phrase:{party}:{phrase}" for phrase in phrases]
