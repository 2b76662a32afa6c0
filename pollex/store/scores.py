"""Scores of a run: kept, counted, and read in portions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pollex.conversations.conversation import Conversation
from pollex.rubrics.answers import RETRYABLE, Outcome
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score_columns import ScoreColumns
from pollex.store.resume import answers_of
from pollex.store.store import Store

PORTION = 500


def scores_of(
    store: Store,
    run: str,
    rubric_set: RubricSet,
    conversations: Sequence[Conversation],
    judges: Sequence[str] = (),
    costs: tuple[float, float] = (1.0, 1.0),
) -> Iterator[ScoreColumns]:
    """Yield the scores of a run in portions, in order; see `NetSat.score_all`."""
    netsat = rubric_set.scorer_of(costs)
    for start in range(0, len(conversations), PORTION):
        ids = [c.id for c in conversations[start : start + PORTION]]
        answers = answers_of(store, run, ids=ids)
        yield netsat.score_all({id_: list(answers.get(id_, {}).values()) for id_ in ids}, judges)


def scored_ids(store: Store, run: str, retry_outcomes: Collection[Outcome] = RETRYABLE) -> set[str]:
    """Return the ids of scored conversations, except those to be asked about again.

    Args:
        retry_outcomes: Outcomes of an answer that a resumed run asks about again.
    """
    rows = store.ask(
        run,
        """SELECT conversation FROM scores WHERE conversation NOT IN (
            SELECT conversation FROM answers GROUP BY conversation, question
            HAVING list_contains(?, last(outcome ORDER BY seq)))""",
        [sorted(retry_outcomes)],
    )
    return {row["conversation"] for row in rows}


def outcome_counts(store: Store, run: str, ids: Collection[str] | None = None) -> dict[str, int]:
    """Count conversations by outcome: these, or all."""
    rows = store.ask(
        run,
        """SELECT outcome, count(*) AS n FROM (
            SELECT last(outcome ORDER BY seq) AS outcome FROM scores
            WHERE $1 IS NULL OR list_contains($1, conversation) GROUP BY conversation
        ) GROUP BY outcome ORDER BY outcome""",
        [None if ids is None else list(ids)],
    )
    return {row["outcome"]: row["n"] for row in rows}
