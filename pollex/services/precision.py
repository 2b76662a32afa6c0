"""How right an ensemble's ratings are by the thumbs, on either side of τ, and how far people agree there.

Source: Goldman, Vasilevski 2024, "RoboRater: Automating Ratings of Task-Oriented Conversations using LLMs", AAAI Spring
Symposium, figures 1 and 2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

import numpy as np

from pollex.agents.votes import Rule, Task, all_but_one, persons_question
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.splits import block_ids
from pollex.measures.agreement import alpha
from pollex.measures.intervals import Figure, exact_share
from pollex.rubrics.answers import Answer
from pollex.selection.consensus import Filtered, TauPoint, ends_of, filtered, first_runs, modes, points, sides
from pollex.services.judge_runs import truth_of
from pollex.store.labels import THUMB, VOLUNTARY, Opinion, opinions
from pollex.store.resume import BATCH
from pollex.store.store import Store
from pollex.store.votes import votes_of

FEWEST = 5
"""Texts that two people must share before anything is said of how they agree."""


@dataclass(frozen=True)
class People:
    """How far people agree where several labelled the same conversations.

    Attributes:
        texts: Texts with labels of two people or more.
        agreed: Those of them on which all say the same.
    """

    texts: int
    agreed: int
    alpha: Figure

    @classmethod
    def of(cls, said: Sequence[Opinion], texts: set[str]) -> People:
        """Sum up opinions of these texts."""
        mine = [one for one in said if one.text_hash in texts]
        values: dict[str, set[str]] = {text: set() for text in _shared(mine)}
        for one in mine:
            values.get(one.text_hash, set()).add(one.value)
        return cls(len(values), sum(len(each) == 1 for each in values.values()), agreement(mine))

    @property
    def share(self) -> Figure:
        """Share on which all say the same."""
        return exact_share(self.agreed, self.texts)

    @property
    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        about = {"texts": self.texts, "agreed": self.agreed, "share": self.share.value, "interval": ends_of(self.share)}
        return about | {"alpha": asdict(self.alpha)}


@dataclass(frozen=True)
class Precision:
    """Ratings against thumbs on either side of τ.

    Attributes:
        chosen: At the rule's own τ.
        by_runs: At the rule's τ with the first n runs alone; where n − 1 of n runs must agree, so with each n.
        by_tau: Each n with every τ that its entropies have. Both are empty where runs were spared.
        people: On either side of the rule's τ.
    """

    chosen: Filtered
    by_runs: tuple[TauPoint, ...]
    by_tau: tuple[TauPoint, ...]
    people: tuple[People, People]

    @property
    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        passed, left = (each.as_json if each.texts else None for each in self.people)
        return self.chosen.as_json | {
            "people": {"passed": passed, "left": left},
            "by_runs": [point.as_json for point in self.by_runs],
            "by_tau": [point.as_json for point in self.by_tau],
        }


def precision_of(
    store: Store, run: str, task: Task, rule: Rule, conversations: Sequence[Conversation]
) -> Precision | None:
    """Hold a run's votes against thumbs; None if nothing is labeled, or if there are not two options.

    Conversations that can't be judged are left out.

    Args:
        rule: With the τ that was fitted, if one was.
    """
    truth = truth_of([one for one in conversations if not one.not_scorable])
    ids = [*truth] if len(task.question.options) == 2 else []
    batches = (ids[start : start + BATCH] for start in range(0, len(ids), BATCH))
    picks = {
        id_: [vote.chosen if isinstance(vote, Answer) else -1 for vote in votes]
        for batch in batches
        for id_, votes in votes_of(store, run, task, batch)
    }
    used = [one for one in conversations if one.id in picks]
    if not used:
        return None
    chosen = np.full((len(used), rule.runs), -1, dtype=np.int64)
    for row, one in enumerate(used):
        chosen[row, : len(picks[one.id])] = picks[one.id]
    right, together = np.array([truth[one.id] for one in used], dtype=np.int64), block_ids(used)
    votes = np.asarray((chosen[:, :, None] == [0, 1]).sum(axis=1), dtype=np.int64)
    spared = [rule.runs - len(picks[one.id]) for one in used]
    passes = np.array([not rule.refusal(*each) for each in zip(votes.tolist(), spared, strict=True)], dtype=bool)
    numbers = () if any(spared) else range(1, rule.runs + 1)
    first = {n: first_runs(chosen, n, 2, ceil(rule.minimum * n / rule.runs)) for n in numbers}
    one_differs = rule.tau == all_but_one(rule.runs)  # where one run may, so with any number of them
    taus = {n: tau for n in numbers if (tau := all_but_one(n) if one_differs else rule.tau) is not None}
    said, passing = _said(store, task, conversations), {used[row].text_hash for row in np.flatnonzero(passes)}
    failing = {one.text_hash for one in used} - passing
    return Precision(
        sides(passes, modes(votes), right, together),
        tuple(TauPoint(n, tau, filtered(*first[n], right, tau, together)) for n, tau in taus.items()),
        tuple(point for n in numbers for point in points(*first[n], right, n, together)),
        (People.of(said, passing), People.of(said, failing)),
    )


def _said(store: Store, task: Task, conversations: Sequence[Conversation]) -> list[Opinion]:
    """Return people's thumbs, in the log and in the store, and their answers to the question, as thumbs."""
    thumbs = {Label.POSITIVE: "up", Label.NEGATIVE: "down"}
    answers = dict(zip((option.text for option in task.question.options), thumbs.values(), strict=True))
    log = [
        Opinion(one.judge, one.text_hash, one.id, "", thumbs[one.label], "log", "")
        for one in conversations
        if one.judge and one.label in thumbs
    ]
    asked = [(THUMB, {"up": "up", "down": "down"}), (persons_question(task.question).id, answers)]
    kept = [
        Opinion(one.annotator, one.text_hash, one.conversation, one.run, words[one.value], one.source, one.drawn)
        for question, words in asked
        for one in opinions(store, question)
        if one.source == "person" and one.drawn != VOLUNTARY and one.annotator and one.value in words
    ]
    return log + kept


def agreement(of: Sequence[Opinion]) -> Figure:
    """Compute Krippendorff's alpha of annotators' answers, with its interval; numbers are options in an order."""
    if len(shared := _shared(of)) < FEWEST:
        return Figure(
            None, n=len(shared), undefined=f"too few: {len(shared)} texts have two answers, {FEWEST} are needed"
        )
    kept = [one for one in of if one.text_hash in shared]
    texts, people, values = (
        sorted({getattr(one, name) for one in kept}) for name in ("text_hash", "annotator", "value")
    )
    ordered = not any(isinstance(value, str) for value in values)
    return alpha(
        np.array([texts.index(one.text_hash) for one in kept]),
        np.array([people.index(one.annotator) for one in kept]),
        np.array([values.index(one.value) for one in kept]),
        tuple(map(float, values if ordered else range(len(values)))),
        "ordinal" if ordered else "nominal",
        np.random.default_rng(0),
    )


def _shared(of: Sequence[Opinion]) -> set[str]:
    people: dict[str, set[str]] = defaultdict(set)
    for one in of:
        people[one.text_hash].add(one.annotator)
    return {text for text, who in people.items() if len(who) > 1}
