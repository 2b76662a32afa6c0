"""What a few lines of scikit-learn reach without rubrics: TF-IDF and logistic regression on the whole text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pollex.conversations.model import Conversation

Floats = npt.NDArray[np.float64]


def tfidf_scores(
    training: Sequence[Conversation], positive: npt.NDArray[np.bool_], others: Sequence[Conversation]
) -> tuple[Floats, Floats]:
    """Log-odds of being positive [conversation], for the training conversations themselves and for others.

    Words and pairs of words that two conversations have, sublinear, C = 10, balanced classes.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # a second, needed by `learn` alone
    from sklearn.linear_model import LogisticRegression

    try:
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        seen = vectorizer.fit_transform([text_of(c) for c in training])
    except ValueError:  # no word stands in two conversations
        return np.zeros(len(training)), np.zeros(len(others))
    model = LogisticRegression(C=10, class_weight="balanced", max_iter=2000).fit(seen, positive)
    unseen = vectorizer.transform([text_of(c) for c in others]) if others else None
    return model.decision_function(seen), np.zeros(0) if unseen is None else model.decision_function(unseen)


def text_of(conversation: Conversation) -> str:
    """What was said, without who said it."""
    return "\n".join(turn.content for turn in conversation.turns).encode("utf-8", "replace").decode()
