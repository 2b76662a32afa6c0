"""Pairs of training conversations that are much alike and were rated differently."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle

import numpy as np

from pollex.agents.roles import ContrastingPair, Extraction
from pollex.conversations.conversation import Conversation, Label
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import is_built_in_source

MIN_COSINE_OF_PAIRED_CONVERSATIONS = 0.35
"""Cosine of the user's words by TF-IDF from which two conversations are much alike: one task, or one fault.

Below, what differs tells of the tasks and not of how they went.
"""


def match_opposite_pairs(
    training: Sequence[Conversation],
    extractions: Mapping[str, Extraction | Unanswered],
    most: int,
) -> tuple[ContrastingPair, ...]:
    """Pair summaries of the nearest conversations with opposite thumbs, each conversation at most once.

    A conversation in which the model found no reason is left out: its summary says that nothing
    shows why.
    """
    summaries = {}
    for id_, extraction in extractions.items():
        if isinstance(extraction, Extraction) and any(
            not is_built_in_source(reason.source) for reason in extraction.reasons
        ):
            summaries[id_] = extraction.summary

    up = []
    for c in training:
        if c.label is Label.POSITIVE and summaries.get(c.id):
            up.append(c)

    down = []
    for c in training:
        if c.label is Label.NEGATIVE and summaries.get(c.id):
            down.append(c)

    if not up or not down:
        return ()

    pairs = []
    for a, b in pair_similar_conversations(up, down, most):
        pairs.append(ContrastingPair(satisfied=summaries[a.id], dissatisfied=summaries[b.id]))

    return tuple(pairs)


def rotate_pairs(
    pairs: Sequence[ContrastingPair], size: int
) -> Iterator[tuple[ContrastingPair, ...]]:
    """Yield `size` pairs at a time, other ones each time, from the first again after the last."""
    return cycle(
        [tuple(pairs[start : start + size]) for start in range(0, len(pairs), size)] or [()]
    )


def pair_similar_conversations(
    up: Sequence[Conversation],
    down: Sequence[Conversation],
    most: int,
) -> list[tuple[Conversation, Conversation]]:
    """Return pairs whose users use similar words, nearest first."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # takes a second to import

    words = []
    for c in (*up, *down):
        contents = []
        for turn in c.turns:
            if turn.role == "user":
                contents.append(turn.content)

        words.append(" ".join(contents))

    try:
        vectors = TfidfVectorizer(sublinear_tf=True, min_df=1).fit_transform(words)
    except ValueError:  # no words at all
        return []

    # [conversation with a thumb up, conversation with a thumb down]
    cosine = (vectors[: len(up)] @ vectors[len(up) :].T).toarray()
    pairs: list[tuple[Conversation, Conversation]] = []
    # the nearest pair that is left, whose conversations take no further part
    while len(pairs) < most and cosine.max() >= MIN_COSINE_OF_PAIRED_CONVERSATIONS:
        a, b = map(int, np.unravel_index(int(cosine.argmax()), cosine.shape))
        pairs.append((up[a], down[b]))
        cosine[a, :] = cosine[:, b] = 0

    return pairs
