"""What a reader of a rubric set must know before trusting its figures."""

from __future__ import annotations

from pollex.conversations.counts import count
from pollex.conversations.splits import blocks
from pollex.graphs.learn.state import LearnContext
from pollex.selection.losses import Bools
from pollex.selection.resampling import FEWEST

SMALL = 50
"""Held-out conversations of the smaller class below which a figure is called noisy."""


def caveats(context: LearnContext, truth: Bools) -> list[str]:
    """What keeps a reader from trusting the figures too far.

    Args:
        truth: Labels of the held-out conversations that figures are of `[conversation]`.
    """
    notes, held_out = [], len(context.held_out)
    if left_out := held_out - len(truth):
        notes.append(
            f"Left out of all figures: {left_out} of {count(held_out, 'held-out conversation')}, without an answer to "
            "every rubric and so without a score."
        )
    if not held_out:
        notes.append(
            "Nothing was held out: there are no figures on conversations that the rubrics were not learnt from."
        )
    elif len(truth) and (smaller := int(min(truth.sum(), (~truth).sum()))) < SMALL:
        notes.append(
            f"The smaller class has {count(smaller, 'held-out conversation')}: figures differ a lot from split to "
            "split, so read the intervals, not the figures; one without an interval says little."
        )
    labelled = (*context.training, *context.held_out)
    if (apart := len(blocks(labelled))) < len(labelled):
        notes.append(
            f"By group and text, {len(labelled)} labelled conversations are no more than {apart} that don't belong "
            f"together. Intervals allow for that, and there is none of fewer than {FEWEST}; a window with a guarantee "
            "takes all of them as independent, and promises too much where those of a group are alike."
        )
    n_sat, n_dsat = (sum(r.polarity == kind for r in context.work.chosen) for kind in ("sat", "dsat"))
    if (n_sat, n_dsat) != context.settings.budget:
        notes.append(f"The pool had fewer rubrics than the budget: {n_sat} SAT and {n_dsat} DSAT were chosen.")
    if failed := len(context.work.failures):
        notes.append(
            f"{count(failed, 'conversation lacks', 'conversations lack')} an answer; "
            "`pollex trace` of this run says why."
        )
    if silent := len(context.work.unextracted):
        notes.append(f"{count(silent, 'training conversation')} gave no reasons; `pollex trace` of this run says why.")
    return notes


def refusals(refused: dict[str, int]) -> list[str]:
    """One line a cause for rubrics that were written and not taken."""
    return [
        f"{count(n, 'rubric text was', 'rubric texts were')} refused: {cause}" for cause, n in sorted(refused.items())
    ]
