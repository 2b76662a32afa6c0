"""What a remedy is about, and who proposes, selects and proves."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.splits import find_dependent_blocks
from pollex.measures.arrays import Ints
from pollex.rooms.remedy.conversations.reply_context import ReplyContext, hash_to_random_order
from pollex.rooms.remedy.measures.looks import DEFAULT_LOOKS
from pollex.rooms.remedy.measures.proofs import (
    ANY_STRATUM,
    DEFAULT_HARM_MARGIN,
    FAILING_STRATUM,
    FINE_STRATUM,
)

RemedyPart = Literal["propose", "select", "prove"]
CASES_FACT_KIND = "cases"
"""Kind of fact that no run has: when cases were written, and the beginnings of their conversations' text hashes."""
SHARES_OF_PARTS: tuple[tuple[RemedyPart, float], ...] = (
    ("propose", 0.2),
    ("select", 0.3),
    ("prove", 0.5),
)


@dataclass(frozen=True, kw_only=True)
class RemedyOptions:
    """What a remedy is about; `pollex remedy run` describes each.

    Attributes:
        render: Fills a prompt's template for a conversation; None: from its system turn or
            metadata.
    """

    prompt: Path | str | tuple[str, ...]
    target: str
    edit: Path | str | tuple[str | Path, ...] = ()
    keep: tuple[str, ...] = ()
    any_prompt: bool = False
    margin: float = DEFAULT_HARM_MARGIN
    candidates: int | None = None
    finalists: int = 1
    accept: str | None = None
    people: int = 0
    live_tools: str = "no"
    back: int = 0
    replies: int | None = None
    tried: int = 60
    others: int = 100
    seed: int = 0
    render: Callable[[str, Conversation], str | None] | None = None

    @property
    def prompts(self) -> tuple[str | Path, ...]:
        """The prompt, or several as `NAME=FILE`."""
        if isinstance(self.prompt, str | Path):
            return (self.prompt,)
        return tuple(self.prompt)

    @property
    def edits(self) -> tuple[str | Path, ...]:
        """Changes of the user, each perhaps as `NAME=FILE`; empty: they are proposed."""
        if isinstance(self.edit, str | Path):
            return (self.edit,)
        return tuple(self.edit)


def assign_waves(chosen: Sequence[tuple[ReplyContext, int]], waves: int = DEFAULT_LOOKS) -> Ints:
    """Assign each context the wave in which it is asked `[context]`: an equal share of the users of each stratum."""
    # the wave of a user, given in the first stratum that has them
    waves_by_user: dict[str, int] = {}
    for stratum in (FAILING_STRATUM, FINE_STRATUM, ANY_STRATUM):
        users = [
            *dict.fromkeys(
                c.user for c, s in chosen if s == stratum and c.user not in waves_by_user
            )
        ]
        # equal shares of users in each wave
        for n, user in enumerate(users):
            waves_by_user[user] = n * waves // len(users)

    return np.array([waves_by_user[context.user] for context, _ in chosen], int)


def assign_parts(
    conversations: Sequence[Conversation],
    learned: Collection[str] = (),
    seed: int = 0,
    *,
    select: bool = True,
) -> dict[str, RemedyPart]:
    """Assign each conversation a part, by id.

    Conversations of a user, or of one text, are never parted. What the rubrics were learned from,
    or somebody tuned on, proposes and selects first: rubrics fitted there flatter themselves.

    Args:
        learned: Beginnings of the text hashes of such conversations.
        select: Whether there is a selection; without one, its share proves.
    """
    tied = find_dependent_blocks(conversations)

    # known texts come first, so that proofs get the new ones
    def order(block: list[int]) -> tuple[bool, str]:
        names = [conversations[index].id for index in block]
        new = not any(conversations[index].text_hash[:16] in learned for index in block)
        return new, hash_to_random_order(min(names), seed)

    remedy_parts: dict[str, RemedyPart] = {}
    shares = SHARES_OF_PARTS if select else (("propose", 0.2), ("prove", 0.8))
    # ends of the parts, in conversations
    ends = np.cumsum([share for _, share in shares]) * len(conversations)
    for block in sorted(tied, key=order):
        # a block goes to the part in which its middle lies
        place = int((ends < len(remedy_parts) + len(block) / 2).sum())
        part = shares[min(place, len(shares) - 1)][0]
        remedy_parts |= {conversations[index].id: part for index in block}

    return remedy_parts
