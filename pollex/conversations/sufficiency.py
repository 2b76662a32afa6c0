"""Whether a log's labels are enough to learn or measure anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pollex.conversations.model import Conversation, Label
from pollex.errors import BadLabels

MINIMUM = 10
"""Conversations of each class, below which nothing is learnt."""


def check_learnable(conversations: Iterable[Conversation], minimum: int = MINIMUM) -> None:
    """Stops where one class is missing or too small; conversations that no judge can be asked about don't count.

    Raises:
        BadLabels: Says how many there are of each class.
    """
    labels: Counter[Label] = Counter()
    unscorable: Counter[Label] = Counter()
    for conversation in conversations:
        (unscorable if conversation.not_scorable else labels)[conversation.label] += 1
    good, bad = labels[Label.POSITIVE], labels[Label.NEGATIVE]
    if min(good, bad) >= minimum:
        return
    lost = unscorable[Label.POSITIVE] + unscorable[Label.NEGATIVE]
    left_out = f", {unscorable.total()} that can't be scored ({lost} with a label)" if unscorable else ""
    counts = f"{good} positive, {bad} negative, {labels[Label.NONE]} without a label{left_out}"
    raise BadLabels(f"{_lack(good, bad, lost, minimum)}: {counts}", remedy=_remedy(good, bad, lost, minimum))


def _lack(good: int, bad: int, lost: int, minimum: int) -> str:
    if not good and not bad:
        return "no conversation with a label can be scored" if lost else "no conversation has a label"
    if not good or not bad:
        counted = " of conversations that can be scored" if lost else ""
        return f"all labels{counted} are {'negative' if bad else 'positive'}"
    return f"fewer than {minimum} conversations of a class"


def _remedy(good: int, bad: int, lost: int, minimum: int) -> str:
    if not good and not bad and not lost:
        return "say where the labels are: --label-field, and --positive and --negative for ratings"
    if lost:
        return f"a conversation needs words of a user and of an assistant; add labels until there are {minimum} of each"
    return f"add labelled conversations until there are {minimum} of each class"
