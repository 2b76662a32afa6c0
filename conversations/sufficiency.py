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
    unscorable = 0
    for conversation in conversations:
        if conversation.not_scorable:
            unscorable += 1
        else:
            labels[conversation.label] += 1
    good, bad = labels[Label.POSITIVE], labels[Label.NEGATIVE]
    if min(good, bad) >= minimum:
        return
    left_out = f", {unscorable} that can't be scored" if unscorable else ""
    counts = f"{good} positive, {bad} negative, {labels[Label.NONE]} without a label{left_out}"
    raise BadLabels(f"{_lack(good, bad, minimum)}: {counts}", remedy=_remedy(good, bad, minimum))


def _lack(good: int, bad: int, minimum: int) -> str:
    if not good and not bad:
        return "no conversation has a label"
    if not good or not bad:
        return f"all labels are {'negative' if bad else 'positive'}"
    return f"fewer than {minimum} conversations of a class"


def _remedy(good: int, bad: int, minimum: int) -> str:
    if not good and not bad:
        return "say where the labels are: --label-field, and --positive and --negative for ratings"
    return f"add labelled conversations until there are {minimum} of each class"
