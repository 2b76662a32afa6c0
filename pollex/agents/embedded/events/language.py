"""A check that a log is English enough for detectors that read English words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pollex.agents.embedded.events.sentences import word_set
from pollex.conversations.conversation import Conversation

LEAST = 0.12
"""Share of words that are the commonest function words: .25 to .4 in English prose, .01 to .05 in other languages."""
MOST_READ = 200
FEWEST_WORDS = 50

_COMMON = word_set(
    """the to of and a i you is it that for not this with do what can have are be my your on me no yes but if"""
)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


def english_share(conversations: Sequence[Conversation]) -> float:
    """Return the share of English function words in users' words; 1 for short texts."""
    words = [
        word.lower()
        for conversation in conversations[:MOST_READ]
        for turn in conversation.turns
        if turn.role == "user"
        for word in _WORD.findall(_CODE.sub(" ", turn.content[:1000]))
    ]
    if len(words) < FEWEST_WORDS:
        return 1.0
    return sum(word in _COMMON for word in words) / len(words)


def not_english(conversations: Sequence[Conversation]) -> str:
    """Return why detectors of events don't apply; empty if they do."""
    found = english_share(conversations)
    if found >= LEAST:
        return ""
    return (
        f"the log isn't in English: {found:.0%} of its words are common English ones; events, topics and signals of "
        f"wording read English only, and what stands here rests on the log's own words, on lengths and on form"
    )
