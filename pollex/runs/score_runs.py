"""Runs that score: begun or resumed in the store, with what their nodes work with."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pollex.agents.roles import Judge
from pollex.conversations.conversation import Conversation
from pollex.graphs.context import ConversationIndex
from pollex.graphs.run import carry_out_run
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import ScoreColumns
from pollex.runs.run import RunSettings, read_conversation_ids
from pollex.store.resume import (
    CONVERSATIONS_PER_QUERY,
    count_conversations_by_outcome,
    list_scored_ids,
)
from pollex.store.rows import make_conversation_rows, make_rubric_rows
from pollex.store.rubric_sets import compute_rubric_set_digest


@dataclass(frozen=True)
class ScoringResult:
    """The result of a scoring run; `scores_of` reads the scores."""

    run: str
    counts: dict[str, int]


async def run_scoring(
    conversations: Sequence[Conversation],
    rubric_set: RubricSet,
    *,
    judge: Judge,
    data_fingerprint: str,
    setting: RunSettings,
    command: Literal["score", "evaluate", "label"] = "score",
    whole: Callable[[Sequence[Conversation]], Awaitable[ScoreColumns]] | None = None,
    report: Callable[[ScoreColumns], None] = lambda _scores: None,
) -> ScoringResult:
    """Score conversations with a rubric set; `scores_of` reads the scores.

    Args:
        whole: What scores batches at once, for a judge that asks nobody.
        report: Told each batch's scores, in the order of the conversations; only with `whole`.
    """
    from pollex.graphs.score import ScoreContext, ScoreWork, build

    # a second start with the same data, rubrics and judge resumes the run
    fingerprint = {
        "data": data_fingerprint[:12],
        "rubrics": compute_rubric_set_digest(rubric_set),
        "judge": judge.fingerprint,
    }
    netsat = rubric_set.scorer_of()  # one that can't be rebuilt begins no run
    async with setting.begin_or_resume(command, fingerprint, [judge.name]) as run:
        store = setting.store
        if not store.value(
            "SELECT count(*) FROM facts WHERE run = ? AND kind = 'rubric'", [run.id]
        ):
            # so that a trace can tell what was asked
            store.put(make_rubric_rows(run.id, rubric_set.all_rubrics))

        # a resumed run has stored some conversations already; whole batches are stored with scores
        stored_ids = read_conversation_ids(store, run.id)
        for start in range(0, 0 if whole else len(conversations), CONVERSATIONS_PER_QUERY):
            new = []
            for c in conversations[start : start + CONVERSATIONS_PER_QUERY]:
                if c.id not in stored_ids:
                    new.append(c)

            await store.write(make_conversation_rows(run.id, new))
        shelf = ConversationIndex(conversations)
        # outcomes that may be others the next time count as not done
        done = list_scored_ids(store, run.id, setting.retry_outcomes)
        # whole batches cost little, and are scored again rather than read from the store
        pending: dict[str, None] = {}
        for id_ in shelf:
            if whole or id_ not in done:
                pending[id_] = None
        live = ScoreWork(
            **setting.of_run(run.id),
            stage="score",
            total=len(shelf),
            pending=pending,
            outcomes=Counter({} if whole else count_conversations_by_outcome(store, run.id, done)),
            fine=frozenset({"scored"}),
            workers=[judge.name],
            shelf=shelf,
            whole=whole,
            report=report,
            scored=done,
            stored_ids=stored_ids,
            judge=judge,
            questions=rubric_set.questions,
            netsat=netsat,
        )
        state = await carry_out_run(
            build(),
            live,
            ScoreContext.of(setting.arguments),
            anew=whole is not None,
        )

    return ScoringResult(run.id, state["outcomes"])
