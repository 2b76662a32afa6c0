"""What distinguishes this log's classes beyond the general signals: phrases, and clusters of like turns.

The best of thousands stands out by chance alone. So a phrase or cluster that is picked on one half of the conversations
must hold on the other half, which had no part in the choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded.evidence import phrase_signal
from pollex.agents.embedded.signals.signal import Party, Signal
from pollex.agents.embedded.view import Floats, View
from pollex.prompts.stopwords import STOPWORDS

PARTIES: tuple[Party, Party] = ("user", "assistant")
PICKED_Z = 2.0
HELD_Z = 1.645  # one-sided 5 %
MOST_PHRASES = 8
MOST_CLUSTERS = 6
LONGEST_PHRASE = 3
TURNS_PER_CLUSTER = 12

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Cluster:
    """Turns of one party that are alike.

    Attributes:
        center: [width], length 1.
        closeness: Cosine to the center from which on a turn belongs.
        example: The turn nearest to the center.
    """

    party: Party
    center: npt.NDArray[np.float32]
    closeness: float
    example: str

    def signal(self, name: str) -> Signal:
        """Marks turns that belong, by how near they are."""

        def marks(view: View) -> Floats:
            out = np.zeros(len(view.texts))
            turns = view.of(self.party)
            cosines = view.vectors[turns] @ self.center
            out[turns] = np.where(cosines >= self.closeness, cosines, 0.0)
            return out

        return Signal(name, self.party, f"The {self.party} says something like “{self.example}”.", marks)


def contrast(present: Flags, positive: Flags) -> Floats:
    """z of the difference in log-odds of being present between the classes, for each column of [conversation, thing].

    Half a conversation is added to each cell. Source: Haldane 1956, doi:10.1111/j.1469-1809.1955.tb01285.x.
    """
    yes_good = present[positive].sum(axis=0) + 0.5
    yes_bad = present[~positive].sum(axis=0) + 0.5
    no_good = positive.sum() + 1 - yes_good
    no_bad = (~positive).sum() + 1 - yes_bad
    odds = np.log(yes_good / no_good) - np.log(yes_bad / no_bad)
    return np.asarray(odds / np.sqrt(1 / yes_good + 1 / yes_bad + 1 / no_good + 1 / no_bad))


def standing_out(present: Flags, positive: Flags) -> Floats:
    """z over all conversations of [conversation, thing], 0 for each thing that doesn't hold on the half it wasn't picked on."""
    halves = [every_second(positive, start) for start in (0, 1)]
    first, second = (contrast(present[half], positive[half]) for half in halves)
    held = (np.minimum(first, second) >= HELD_Z) | (np.maximum(first, second) <= -HELD_Z)
    picked = np.maximum(abs(first), abs(second)) >= PICKED_Z
    return np.where(held & picked, contrast(present, positive), 0.0)


def every_second(positive: Flags, start: int) -> Flags:
    """Every second conversation of each class, as a mask."""
    half = np.zeros(len(positive), dtype=bool)
    for label in (True, False):
        half[np.flatnonzero(positive == label)[start::2]] = True
    return half


def mined_phrases(views: Sequence[View], positive: Flags) -> list[Signal]:
    """Phrases of up to three words that one class's conversations hold clearly more often."""
    return [signal for party in PARTIES for signal in phrases_of(party, views, positive)]


def phrases_of(party: Party, views: Sequence[View], positive: Flags) -> list[Signal]:
    from sklearn.feature_extraction.text import CountVectorizer  # a second; only `learn` needs it

    texts = ["\n".join(view.texts[turn] for turn in view.of(party)) for view in views]
    least = max(4, round(0.04 * len(views)))
    counter = CountVectorizer(
        binary=True,
        ngram_range=(1, LONGEST_PHRASE),
        min_df=least,
        token_pattern=r"(?u)\b[^\W\d_][\w']+\b",
        max_features=20_000,
    )
    try:
        present = counter.fit_transform(texts).toarray().astype(bool)
    except ValueError:  # no phrase in as many conversations
        return []
    z = standing_out(present, positive)
    phrases = counter.get_feature_names_out()
    chosen: list[int] = []
    for column in sorted(range(len(z)), key=lambda i: (-abs(z[i]), phrases[i])):
        if z[column] == 0 or len(chosen) == MOST_PHRASES:
            break
        if set(phrases[column].split()) <= STOPWORDS:
            continue
        # One of two phrases that stand in the same conversations is enough.
        if all(overlap(present[:, column], present[:, other]) < 0.5 for other in chosen):
            chosen.append(column)
    return [phrase_signal(party, str(phrases[i])) for i in chosen]


def overlap(a: Flags, b: Flags) -> float:
    """Jaccard: conversations with both over conversations with either."""
    return float((a & b).sum() / max(1, (a | b).sum()))


def mined_clusters(views: Sequence[View], positive: Flags, seed: int = 0) -> list[Cluster]:
    """Clusters of like turns that one class's conversations hold clearly more often."""
    return [cluster for party in PARTIES for cluster in clusters_of(party, views, positive, seed)]


def clusters_of(party: Party, views: Sequence[View], positive: Flags, seed: int) -> list[Cluster]:
    from sklearn.cluster import MiniBatchKMeans  # a second; only `learn` needs it

    where = [(i, int(turn)) for i, view in enumerate(views) for turn in view.of(party)]
    count = min(40, len(where) // TURNS_PER_CLUSTER)
    if count < 2:
        return []
    vectors = np.stack([views[i].vectors[turn] for i, turn in where])
    fitted = MiniBatchKMeans(count, random_state=seed, n_init=3, batch_size=2048).fit(vectors)
    centers = fitted.cluster_centers_ / np.linalg.norm(fitted.cluster_centers_, axis=1, keepdims=True)
    own = np.einsum("tw,tw->t", vectors, centers[fitted.labels_])
    present = np.zeros((len(views), count), dtype=bool)
    present[[i for i, _ in where], fitted.labels_] = True
    z = standing_out(present, positive)
    best = [k for k in np.argsort(-abs(z), kind="stable") if z[k]][:MOST_CLUSTERS]
    clusters = []
    for k in best:
        members = np.flatnonzero(fitted.labels_ == k)
        i, turn = where[members[np.argmax(own[members])]]
        example = " ".join(views[i].texts[turn].split())[:80]
        closeness = float(np.quantile(own[members], 0.2))
        clusters.append(Cluster(party, centers[k].astype(np.float32), closeness, example))
    return clusters
