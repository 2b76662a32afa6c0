"""Plain methods beside the rubrics: what words, and what all signals reach without any rubric."""

from collections.abc import Callable, Sequence
from itertools import compress

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.splits import block_ids
from pollex.measures.arrays import Bools, Floats, Ints
from pollex.measures.classification import assess, auc, auc_difference
from pollex.rubrics.records import Baseline

Scored = tuple[Floats, Floats]
"""Log-odds of being positive `[conversation]`, of training conversations and of others."""

PENALTY = 0.01
"""Inverse strength: some 200 features stand against a few hundred labels."""

WORDS, SIGNALS, CONSTANT = "TF-IDF + logistic regression", "signals + logistic regression", "constant"


class Plain:
    """The plain methods, fitted on training conversations.

    Attributes:
        scores: By method, what it gives training conversations, and those that figures are of.
        strongest: The method with the highest cross-validated AUC; words where there are too few labels.

    Args:
        measured: What was held out, or training conversations that are measured by folds.
        features: See `word_features`, of training and held-out conversations.
        fold: Of each training conversation, and of others behind them `[conversation]`; None where there are too few.
        crossfitted: Whether figures are by folds.
    """

    def __init__(
        self,
        training: Sequence[Conversation],
        positive: Bools,
        measured: Sequence[Conversation],
        features: Floats,
        fold: Ints | None,
        *,
        crossfitted: bool,
    ) -> None:
        self.training, self.positive, self.measured = training, positive, measured
        texts, held_out = [text_of(c) for c in training], [] if crossfitted else [text_of(c) for c in measured]
        known, rest = features[: len(training)], features[len(training) :]
        constant = 1.0 if positive.mean() >= 0.5 else -1.0
        self.scores: dict[str, Scored] = {
            WORDS: by_words(texts, held_out, positive),
            CONSTANT: (np.full(len(training), constant), np.full(len(measured), constant)),
            SIGNALS: by_signals(known, rest, positive),
        }
        ways: dict[str, Callable[[Bools], Floats]] = {
            WORDS: lambda out: by_words(list(compress(texts, ~out)), list(compress(texts, out)), positive[~out])[1],
            SIGNALS: lambda out: by_signals(known[~out], known[out], positive[~out])[1],
        }
        self.strongest, reached = WORDS, -1.0
        outs = [] if fold is None else [fold[: len(training)] == number for number in np.unique(fold)]
        for name, way in ways.items() if outs else ():
            found = np.zeros(len(training))
            for out in outs:
                found[out] = way(out)
            if (own := float(np.mean([auc(found[out], positive[out]) for out in outs]))) > reached:
                self.strongest, reached = name, own
            if crossfitted:
                own_rows = {c.id: row for row, c in enumerate(training)}
                self.scores[name] = self.scores[name][0], found[[own_rows[c.id] for c in measured]]

    def baselines(self, truth: Bools, tested: Floats, rng: np.random.Generator) -> list[Baseline]:
        """Measure each method on both sides, and how far the rubrics are ahead.

        Args:
            truth: Labels of held-out conversations `[conversation]`.
            tested: Their NetSAT `[conversation]`.
        """
        known, blocks = block_ids(self.training), block_ids(self.measured)
        held_out = len(truth) > 0
        return [
            Baseline(
                name=name,
                training=assess(seen, self.positive, 0.0, np.zeros(len(seen), bool), rng, together=known),
                held_out=assess(unseen, truth, 0.0, np.zeros(len(unseen), bool), rng, together=blocks)
                if held_out
                else None,
                advantage=auc_difference(tested, unseen, truth, rng, together=blocks) if held_out else None,
            )
            for name, (seen, unseen) in self.scores.items()
        ]


def by_words(seen: Sequence[str], unseen: Sequence[str], positive: Bools) -> Scored:
    """Fit words and pairs of words that two conversations have, sublinear, C = 10, balanced classes."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # a second, needed by `learn` alone
    from sklearn.linear_model import LogisticRegression

    try:
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        known = vectorizer.fit_transform(seen)
    except ValueError:  # no word stands in two conversations
        return np.zeros(len(seen)), np.zeros(len(unseen))
    model = LogisticRegression(C=10, class_weight="balanced", max_iter=2000).fit(known, positive)
    others = np.asarray(model.decision_function(vectorizer.transform(unseen))) if unseen else np.zeros(0)
    return np.asarray(model.decision_function(known)), others


def by_signals(seen: Floats, unseen: Floats, positive: Bools) -> Scored:
    """Fit all signals of mood and flow `[conversation, feature]`, standardized, balanced classes."""
    from sklearn.linear_model import LogisticRegression  # as above

    spread = seen.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    known, others = ((side - seen.mean(axis=0)) / scale for side in (seen, unseen))
    model = LogisticRegression(C=PENALTY, class_weight="balanced", max_iter=2000).fit(known, positive)
    return (
        np.asarray(model.decision_function(known)),
        np.asarray(model.decision_function(others)) if len(others) else np.zeros(0),
    )


def text_of(conversation: Conversation) -> str:
    """Return the text of all turns, without roles."""
    return "\n".join(turn.content for turn in conversation.turns).encode("utf-8", "replace").decode()
