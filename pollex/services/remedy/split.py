"""Who proposes, who selects, who proves: three sets of users that share nobody and no text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from pollex.conversations.conversation import Conversation
from pollex.conversations.reply_context import chance_of
from pollex.conversations.splits import blocks

RemedyPart = Literal["propose", "select", "prove"]
SHARES: tuple[tuple[RemedyPart, float], ...] = (("propose", 0.2), ("select", 0.3), ("prove", 0.5))


def parts_of(
    conversations: Sequence[Conversation], learned: Collection[str] = (), seed: int = 0, *, select: bool = True
) -> dict[str, RemedyPart]:
    """Assign each conversation a part, by id.

    Conversations of a user, or of one text, are never parted. What the rubrics were learned from proposes and selects
    first: rubrics fitted there flatter themselves.

    Args:
        learned: Beginnings of the text hashes of conversations that rubrics were learned from.
        select: Whether there is a selection; without one, its share proves.
    """
    tied = blocks(conversations)

    def order(block: list[int]) -> tuple[bool, str]:
        names = [conversations[index].id for index in block]
        new = not any(conversations[index].text_hash[:16] in learned for index in block)
        return new, chance_of(min(names), seed)

    found: dict[str, RemedyPart] = {}
    shares = SHARES if select else (("propose", 0.2), ("prove", 0.8))
    for block in sorted(tied, key=order):
        part = _part_at(len(found) + len(block) / 2, len(conversations), shares)
        found |= {conversations[index].id: part for index in block}
    return found


def _part_at(place: float, n: int, shares: Sequence[tuple[RemedyPart, float]]) -> RemedyPart:
    """Return the part that a place among n belongs to."""
    end = 0.0
    for part, share in shares:
        end += share
        if place <= end * n:
            return part
    return shares[-1][0]
