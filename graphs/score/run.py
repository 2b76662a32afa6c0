"""Runs of `score`: begin or resume one, and read scores and outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.graphs.context import ConversationIndex
from pollex.graphs.run import RunSettings, carry_out, digest, kept_ids, running
from pollex.rubrics.answers import RETRYABLE, Outcome
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score_columns import ScoreColumns
from pollex.store.resume import answers_of
from pollex.store.rows import conversation_rows, rubric_rows
from pollex.store.store import Store

if TYPE_CHECKING:
    from pollex.graphs.score.graph import Whole


async def score(
    conversations: Sequence[Conversation],
    rubric_set: RubricSet,
    *,
    judge: Judge,
    data_fingerprint: str,
    setting: RunSettings,
    command: Literal["score", "evaluate", "label"] = "score",
    whole: Whole | None = None,
    told: Callable[[ScoreColumns], None] = lambda _scores: None,
) -> Scored:
    """Score conversations with a rubric set; `scores_of` reads the scores.

    Args:
        whole: What scores batches in one piece, for a judge that asks nobody.
        told: Told each batch's scores, in the order of the conversations; only with `whole`.
    """
    from pollex.graphs.score.graph import ScoreContext, ScoreWork, build

    fingerprint = {
        "data": data_fingerprint[:12],
        "rubrics": digest(rubric_set.model_dump(mode="json")),
        "judge": judge.fingerprint,
    }
    netsat = rubric_set.scorer_of()  # one that can't be rebuilt begins no run
    async with running(command, fingerprint, setting, [judge.name]) as run:
        store = setting.store
        if not store.value("SELECT count(*) FROM facts WHERE run = ? AND kind = 'rubric'", [run.id]):
            store.put(rubric_rows(run.id, rubric_set.all_rubrics))  # so that a trace can tell what was asked
        known = kept_ids(store, run.id)
        for start in range(0, 0 if whole else len(conversations), PORTION):
            new = [c for c in conversations[start : start + PORTION] if c.id not in known]
            await store.write(conversation_rows(run.id, new))
        shelf, done = ConversationIndex(conversations), scored_ids(store, run.id, setting.retry_outcomes)
        live = ScoreWork(
            **setting.of_run(run.id),
            stage="score",
            total=len(shelf),
            pending={id_: None for id_ in shelf if whole or id_ not in done},
            outcomes=Counter({} if whole else outcome_counts(store, run.id, done)),
            fine=frozenset({"scored"}),
            workers=[judge.name],
            shelf=shelf,
            whole=whole,
            told=told,
            scored=done,
            known=known,
            judge=judge,
            questions=rubric_set.questions,
            netsat=netsat,
        )
        state = await carry_out(build(), live, ScoreContext.of(setting.arguments), anew=whole is not None)
    return Scored(run.id, state["outcomes"])


PORTION = 500


@dataclass(frozen=True)
class Scored:
    """The result of a scoring run; `scores_of` reads the scores."""

    run: str
    counts: dict[str, int]


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
