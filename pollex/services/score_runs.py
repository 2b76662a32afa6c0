"""Runs of `score`, begun or resumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.graphs.context import ConversationIndex
from pollex.graphs.run import carry_out
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import ScoreColumns
from pollex.services.runs import RunSettings, digest, kept_ids, running
from pollex.store.resume import PORTION, outcome_counts, scored_ids
from pollex.store.rows import conversation_rows, rubric_rows


async def score(
    conversations: Sequence[Conversation],
    rubric_set: RubricSet,
    *,
    judge: Judge,
    data_fingerprint: str,
    setting: RunSettings,
    command: Literal["score", "evaluate", "label"] = "score",
    whole: Callable[[Sequence[Conversation]], Awaitable[ScoreColumns]] | None = None,
    told: Callable[[ScoreColumns], None] = lambda _scores: None,
) -> Scored:
    """Score conversations with a rubric set; `scores_of` reads the scores.

    Args:
        whole: What scores batches in one piece, for a judge that asks nobody.
        told: Told each batch's scores, in the order of the conversations; only with `whole`.
    """
    from pollex.graphs.score import ScoreContext, ScoreWork, build

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


@dataclass(frozen=True)
class Scored:
    """The result of a scoring run; `scores_of` reads the scores."""

    run: str
    counts: dict[str, int]
