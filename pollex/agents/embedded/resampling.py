"""Another run without a model: the same evidence, drawn anew from the turns that it rests on.

A bootstrap of a conversation's turns shows on how few of them an answer hangs: where one turn decides, runs disagree.
Source: Efron 1979, 10.1214/aos/1176344552.
"""

from __future__ import annotations

import numpy as np

from pollex.agents.embedded.view import Indices
from pollex.conversations.model import Conversation

RESAMPLED = "embedded, resampled turns"
"""What such a run is signed with."""


def chance(conversation: Conversation, replicate: int) -> np.random.Generator:
    """The chance of one run about one conversation: the same whenever and wherever it is asked."""
    return np.random.default_rng([int(conversation.text_hash[:12], 16), replicate])


def drawn(turns: Indices, rng: np.random.Generator) -> Indices:
    """As many of the turns, with replacement, in the order of the conversation."""
    return np.sort(rng.choice(turns, len(turns))) if len(turns) else turns
