"""Thirteen plain counts of a conversation with logistic regression: what an afternoon without rubrics reaches."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pollex.conversations.conversation import Conversation

Floats = npt.NDArray[np.float64]

THANKS = r"\bthank|\bcheers\b|\bappreciate"
PRAISE = r"\b(great|perfect|awesome|excellent|amazing|wonderful|fantastic|nice|good job)\b"
CORRECTION = r"\b(no|not|never|wrong|instead|actually|meant)\b|n't\b"
APOLOGY = r"\b(sorry|apolog\w*)\b"
REFUSAL = r"\b(unable|cannot|can't|couldn't|unfortunately|not available|failed)\b"
CONFIRMATION = r"^\W{0,3}(yes|yeah|yep|sure|ok|okay|correct|right|sounds good|that works)\b"


def counted(conversation: Conversation) -> list[float]:
    """Turns, two mean lengths, and how often ten things are said, [13]."""
    user, assistant = (said_by(conversation, role) for role in ("user", "assistant"))
    return [
        len(user) + len(assistant),
        float(np.mean([len(text.split()) for text in user])),
        float(np.mean([len(text.split()) for text in assistant])),
        turns_with(THANKS, user),
        turns_with(PRAISE, user),
        turns_with(CORRECTION, user),
        turns_with(APOLOGY, assistant),
        turns_with(REFUSAL, assistant),
        turns_with(r"\?", user),
        turns_with(r"\?", assistant),
        len(user) - len({" ".join(re.findall(r"\w+", text.casefold())) for text in user}),
        turns_with(THANKS, user[-1:]),
        turns_with(CONFIRMATION, user),
    ]


def said_by(conversation: Conversation, role: str) -> list[str]:
    """The texts of one party; never none of a conversation that can be learnt from."""
    return [
        turn.content for turn in conversation.turns if turn.role == role and turn.content.strip()
    ]


def turns_with(pattern: str, texts: Sequence[str]) -> int:
    return sum(re.search(pattern, text, re.IGNORECASE) is not None for text in texts)


def count_scores(
    training: Sequence[Conversation],
    positive: npt.NDArray[np.bool_],
    others: Sequence[Conversation],
) -> Floats:
    """Log-odds of being positive for `others`, [conversation]."""
    model = make_pipeline(
        StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=2000)
    )
    model.fit(np.array([counted(c) for c in training], dtype=np.float64), positive)
    return np.asarray(
        model.decision_function(np.array([counted(c) for c in others], dtype=np.float64))
    )
