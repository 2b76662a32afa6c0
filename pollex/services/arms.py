"""Samples of conversations that are compared: files, runs, or the values of a field; scored, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from pollex.conversations.conversation import Conversation
from pollex.conversations.logs import Logs
from pollex.errors import WrongUse
from pollex.formats.fields import ReadOptions
from pollex.graphs.context import Progress
from pollex.measures.arrays import Bools, Floats, Ints, numbers_of, some_of
from pollex.measures.drift import Stability, counts_of, expected_log_loss, share_unlike, stability, stability_of_counts
from pollex.measures.intervals import Figure
from pollex.rubrics.answers import LIKERT, Answer, Unanswered
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score
from pollex.services.labeled_sample import grouped
from pollex.services.logs import logs_from
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.score import score
from pollex.store.resume import conversations_of, find_run, scores_of
from pollex.store.store import Store

Sample = tuple[list[Conversation], list[Score], frozenset[str]]
"""Conversations, their scores, and the hashes of those that were answered by folds."""

LEARNED_FROM = "SELECT text_hash FROM conversations WHERE side = 'train'"


@dataclass(frozen=True, eq=False)
class Arm:
    """One sample, scored.

    Attributes:
        values: Mean answers `[conversation, rubric]`.
        folded: Hashes of the texts that a run learned from: answered without their own fold, unlike all others.
        unscored: Hashes of the texts that have no score here.
    """

    name: str
    conversations: list[Conversation]
    probability: Floats
    netsat: Floats
    values: Floats
    folded: frozenset[str] = frozenset()
    unscored: frozenset[str] = frozenset()

    def without(self, texts: frozenset[str]) -> Arm:
        """Return the sample without these texts."""
        rows = [row for row, one in enumerate(self.conversations) if one.text_hash not in texts]
        kept = [self.conversations[row] for row in rows]
        return replace(
            self,
            conversations=kept,
            probability=self.probability[rows],
            netsat=self.netsat[rows],
            values=self.values[rows],
        )


def arms_of(
    samples: Sequence[str | Path] | Logs,
    rubric_set: RubricSet,
    *,
    by: str | None = None,
    baseline: str | None = None,
    reading: ReadOptions,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> tuple[list[Arm], int]:
    """Score samples; return them, and the number of conversations that have no score.

    Raises:
        WrongUse: There are fewer than two samples, or the baseline is none of them.
    """

    def scored(logs: Logs) -> Sample:
        result = score(logs, rubric_set, reading=reading, run=run, model=model, progress=progress)
        return list(logs), list(result.scores or ()), frozenset()

    if by is None:
        if isinstance(samples, Logs | str) or len(samples) < 2:
            raise WrongUse("one sample can't be compared", remedy="name two files or runs, or a field", option="by")
        names = [str(one) for one in samples]
        each = (_of_run(one, rubric_set, run) or scored(logs_from(one, reading, progress)) for one in names)
        named = list(zip(names, each, strict=True))
    else:
        named = _cut(scored(logs_from(samples, reading, progress)), by, baseline)
    arms = [_arm(name, sample, rubric_set) for name, sample in named]
    return arms, sum(len(scores) for _, (_, scores, _) in named) - sum(len(arm.conversations) for arm in arms)


def _of_run(name: str, rubric_set: RubricSet, run: RunOptions) -> Sample | None:
    """Return the conversations and scores of a run; None if the name is a file's."""
    if Path(name).exists() or any(sign in name for sign in "*?[./"):
        return None
    with Store.open(run.store, read_only=True) as store:
        return _sample_of(store, name, rubric_set)


def arm_of_run(store: Store, name: str, rubric_set: RubricSet) -> Arm:
    """Return a run of an open store as a sample."""
    return _arm(name, _sample_of(store, name, rubric_set), rubric_set)


def _sample_of(store: Store, name: str, rubric_set: RubricSet) -> Sample:
    found = find_run(store, name)
    conversations = list(conversations_of(store, found.id))
    folded = store.ask(found.id, LEARNED_FROM) if rubric_set.judge.learned else ()  # a model knows no folds
    scores = [one for some in scores_of(store, found.id, rubric_set, conversations) for one in some]
    return conversations, scores, frozenset(row["text_hash"] for row in folded)


def _cut(sample: Sample, by: str, baseline: str | None) -> list[tuple[str, Sample]]:
    """Split a sample by a field, with the baseline first."""
    conversations, scores, folded = sample
    masks = grouped(conversations, by)
    if baseline is not None and baseline not in masks:
        raise WrongUse(f"no conversation has {by} {baseline!r}", remedy=f"values are {', '.join(masks)}")
    if len(masks) < 2:
        raise WrongUse(f"all conversations have the same {by}", remedy="name another field")
    names = sorted(masks, key=lambda name: name != baseline)
    rows = {name: np.flatnonzero(masks[name]).tolist() for name in names}
    return [
        (name, ([conversations[row] for row in rows[name]], [scores[row] for row in rows[name]], folded))
        for name in names
    ]


def _arm(name: str, sample: Sample, rubric_set: RubricSet) -> Arm:
    both = [(c, s) for c, s in zip(*sample[:2], strict=True) if s.netsat is not None and s.probability is not None]
    width = len(rubric_set.rubrics)
    values = [[expected_of(answer) for answer in score.answers[:width]] for _, score in both]
    return Arm(
        name,
        [c for c, _ in both],
        np.array([s.probability for _, s in both], dtype=np.float64),
        np.array([s.netsat for _, s in both], dtype=np.float64),
        np.array(values, dtype=np.float64).reshape(len(both), width),
        sample[2],
        frozenset(c.text_hash for c in sample[0]) - {c.text_hash for c, _ in both},
    )


def expected_of(answer: Answer | Unanswered) -> float:
    """Return an answer's expected value; NaN without one, and where its occasion never came up."""
    return answer.expected() if isinstance(answer, Answer) and not answer.never_came_up else np.nan


def units_of(conversations: Sequence[Conversation]) -> Ints:
    """Assign numbers to users or, without users, to ids; those in both samples are pairs."""
    return numbers_of(("user", c.group) if c.group is not None else ("id", c.id) for c in conversations)


MOST = 2000
"""Conversations a side that the classifier of texts is trained on."""
FOLDS = 5
WORD = r"(?u)\b\w+\b"
BETWEEN_OPTIONS = np.array([(low.value + high.value) / 2 for low, high in pairwise(LIKERT)])
FEWEST = 20
"""Conversations a side below which texts are not told apart."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Differences of a sample from an earlier one, by scores and texts alone.

    Attributes:
        stability: Population stability index of `p`, `netsat` and each rubric, by name: of a rubric over its answers,
            since means of answers crowd at the middle, where a change that nobody would see moves them all.
        unlike: Smallest share of the second sample without a counterpart in the first, by a classifier of their words.
        expected_log_loss: Of each sample, if its probabilities are calibrated.
        held_out_log_loss: Log-loss measured on held-out labels when the set was learned; None if unknown.
    """

    stability: dict[str, Stability]
    unlike: Figure
    expected_log_loss: tuple[float, float]
    held_out_log_loss: Figure | None


def watch(a: Arm, b: Arm, rubric_set: RubricSet, rng: np.random.Generator) -> Watch:
    """Compare two samples without labels."""
    found = {
        "p": stability(a.probability, b.probability, rng),
        "netsat": stability(a.netsat, b.netsat, rng),
    }
    for place, rubric in enumerate(rubric_set.rubrics):
        then, now = (_answers(arm.values[:, place]) for arm in (a, b))
        if then.any() and now.any():
            found[rubric.id] = stability_of_counts(then, now, rng)
    measured = rubric_set.calibrator and rubric_set.calibrator.held_out
    return Watch(
        stability=found,
        unlike=unlike(a.conversations, b.conversations, rng),
        expected_log_loss=(expected_log_loss(a.probability), expected_log_loss(b.probability)),
        held_out_log_loss=measured.log_loss if measured else None,
    )


def _answers(values: Floats) -> Floats:
    """Count mean answers `[conversation]` by the option that is nearest; NaN is no answer."""
    return counts_of(values[~np.isnan(values)], BETWEEN_OPTIONS)


def unlike(before: Sequence[Conversation], after: Sequence[Conversation], rng: np.random.Generator) -> Figure:
    """Estimate the smallest share of a sample that an earlier one has no counterpart for.

    A user's conversations, and those of one id, are predicted by a classifier that has seen none of them.
    """
    if min(len(before), len(after)) < FEWEST:
        return Figure(None, n=len(after), undefined=f"fewer than {FEWEST} conversations on a side")
    drawn = [some_of(sample, MOST, rng) for sample in (before, after)]
    second = np.repeat([False, True], [len(sample) for sample in drawn])
    conversations = [*drawn[0], *drawn[1]]
    unit = units_of(conversations)
    if len(np.unique(unit)) < 2 * FOLDS:
        return Figure(None, n=len(after), undefined=f"fewer than {2 * FOLDS} users")
    texts = [" ".join(turn.content for turn in conversation.turns) for conversation in conversations]
    return share_unlike(_taken_for_second(texts, second, rng.permutation(unit.max() + 1)[unit] % FOLDS), second)


def _taken_for_second(texts: Sequence[str], second: Bools, fold: Ints) -> Bools:
    """Predict from which sample each text is, by classifiers that were fitted without its fold."""
    # scikit-learn takes a second to import
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    words = TfidfVectorizer(sublinear_tf=True, max_features=20_000, dtype=np.float64, token_pattern=WORD)
    x = words.fit_transform(texts)  # weights of words, which no label enters
    found = np.zeros(len(second), dtype=bool)
    for number in range(FOLDS):
        mine = fold == number
        if mine.any() and len(np.unique(second[~mine])) == 2:
            model = LogisticRegression(class_weight="balanced", C=10.0).fit(x[~mine], second[~mine])
            found[mine] = model.predict(x[mine])
    return found
