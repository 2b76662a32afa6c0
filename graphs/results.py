"""What a run came to: scores, outcomes and means, read from its work or from the store."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pollex.agents.answers import MENDABLE, Outcome, Unanswered
from pollex.conversations.model import Conversation, Label
from pollex.conversations.splits import together
from pollex.graphs.learn.state import Work
from pollex.graphs.netsat import Score
from pollex.graphs.rubric_set import RubricSet
from pollex.store.resume import answers_of
from pollex.store.rows import ScoreRow
from pollex.store.store import Store

PORTION = 500


@dataclass(frozen=True)
class LabelledScore:
    """A labelled conversation's NetSAT in a learning run; None where it has none, and `outcome` says why.

    Attributes:
        probability: P(positive), by a model that did not see the conversation; None where there is none.
        block: Those of one side that go together bear one number; None: it is alone.
    """

    conversation_id: str
    side: Literal["training", "held_out"]
    positive: bool
    netsat: float | None
    outcome: str = "scored"
    probability: float | None = None
    block: int | None = None


@dataclass(frozen=True)
class Learned:
    """What a learning run came to.

    Attributes:
        means: By rubric of the set, how much it is agreed with on average among positive and among negative
            conversations, 0 … 10; None where none of them has an answer.
        unextracted: By conversation, why no reasons could be had from it.
    """

    run: str
    rubric_set: RubricSet
    scores: tuple[LabelledScore, ...]
    means: dict[str, tuple[float | None, float | None]]
    unextracted: Mapping[str, Unanswered]


@dataclass(frozen=True)
class Scored:
    """What a scoring run came to; the scores themselves are read with `scores_of`."""

    run: str
    counts: dict[str, int]


def scores_of(
    store: Store,
    run: str,
    rubric_set: RubricSet,
    conversations: Sequence[Conversation],
    judges: Sequence[str] = (),
) -> Iterator[Score]:
    """The scores of a run, in the order of the conversations, read in portions; see `NetSat.score`."""
    netsat = rubric_set.scorer_of()
    for start in range(0, len(conversations), PORTION):
        ids = [c.id for c in conversations[start : start + PORTION]]
        answers = answers_of(store, run, ids=ids)
        yield from netsat.score_all({id_: list(answers.get(id_, {}).values()) for id_ in ids}, judges)


def scored_ids(store: Store, run: str, again: Collection[Outcome] = MENDABLE) -> set[str]:
    """Conversations whose score is stored, but for those that a resumed run asks about again.

    Args:
        again: Outcomes of an answer for which it does.
    """
    rows = store.rows(
        """SELECT conversation FROM scores WHERE run = $1 AND conversation NOT IN (
            SELECT conversation FROM answers WHERE run = $1 GROUP BY conversation, question
            HAVING list_contains($2, last(outcome ORDER BY rowid)))""",
        [run, sorted(again)],
    )
    return {row["conversation"] for row in rows}


def outcome_counts(store: Store, run: str, order: Sequence[str]) -> dict[str, int]:
    """How many conversations came to which outcome; they sum to the number of conversations.

    Args:
        order: The rubrics' ids, as they stand in the set: where none is answered, the first one's outcome counts.
    """
    return {row["outcome"]: row["n"] for row in store.rows(_OUTCOMES, [run, list(order)])}


_OUTCOMES = """
    WITH latest AS (
        SELECT conversation, question, last(outcome ORDER BY rowid) AS outcome
        FROM answers WHERE run = $1 GROUP BY conversation, question
    ), ended AS (
        SELECT CASE
            WHEN count(*) = len($2) AND bool_and(outcome = '') THEN 'scored'
            WHEN count(*) = len($2) AND bool_and(outcome <> '') THEN arg_min(outcome, list_position($2, question))
            ELSE 'incomplete' END AS outcome
        FROM latest GROUP BY conversation
    )
    SELECT outcome, count(*) AS n FROM ended GROUP BY outcome ORDER BY outcome
"""
"""The same as `NetSat.score` says of each; the last answer to a question stands, as it does in `answers_of`."""


def keep_scores(store: Store, run: str, rubric_set: RubricSet, scores: Sequence[LabelledScore]) -> None:
    """What each labelled conversation came to, for `pollex trace`."""
    netsat = rubric_set.scorer_of()
    for one in scores:
        score = Score(conversation_id=one.conversation_id, outcome=one.outcome)
        if one.netsat is not None:
            score = netsat.read(one.conversation_id, one.netsat).model_copy(update={"probability": one.probability})
        store.put([score_row(run, score)])


def score_row(run: str, score: Score) -> ScoreRow:
    """A score as a fact for the store."""
    return ScoreRow(run, score.conversation_id, score.netsat, score.label, score.confident, score.probability)


def labelled_scores(
    work: Work, training: Sequence[Conversation], held_out: Sequence[Conversation]
) -> Iterator[LabelledScore]:
    """NetSAT of every labelled conversation, for plots."""
    sides: tuple[tuple[Literal["training", "held_out"], Sequence[Conversation]], ...] = (
        ("training", training),
        ("held_out", held_out),
    )
    for side, conversations in sides:
        values, answered = work.matrix(conversations, work.chosen)
        unseen = work.crossfitted if side == "training" else likelihoods(work, conversations)
        complete, blocks = np.all(answered, axis=1).tolist(), together(conversations).tolist()
        for c, row, scored, block in zip(conversations, values, complete, blocks, strict=True):
            failure, positive = work.failures.get(c.id), c.label is Label.POSITIVE
            if scored:
                yield LabelledScore(c.id, side, positive, float(row.sum()), probability=unseen.get(c.id), block=block)
            else:
                outcome = failure.outcome if failure else "incomplete"
                yield LabelledScore(c.id, side, positive, None, outcome, block=block)


def likelihoods(work: Work, conversations: Sequence[Conversation]) -> dict[str, float]:
    """P(positive) by conversation."""
    if work.thumb_model is None or not conversations:
        return {}
    found = work.thumb_model.probability(work.probabilities(conversations, work.chosen))
    return dict(zip((c.id for c in conversations), found.tolist(), strict=True))


def mean_answers(work: Work, conversations: Sequence[Conversation]) -> dict[str, tuple[float | None, float | None]]:
    """By rubric of the set, the mean answer among positive and among negative conversations."""

    def mean(rubric_id: str, label: Label) -> float | None:
        answers = (work.answers.get(c.id, {}).get(rubric_id) for c in conversations if c.label is label)
        values = [value for value in answers if value is not None]
        return sum(values) / len(values) if values else None

    return {r.id: (mean(r.id, Label.POSITIVE), mean(r.id, Label.NEGATIVE)) for r in work.chosen}
