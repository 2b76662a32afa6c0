"""The unit of work of scoring with a model: what is paid for is kept in the unit's own ledger segment."""

from __future__ import annotations

from collections.abc import Sequence

from pollex.conversations.conversation import Conversation
from pollex.formats.places import Place
from pollex.gateway.budget import Budget
from pollex.gateway.capabilities import Capabilities
from pollex.gateway.gateway import Gateway
from pollex.gateway.probe import probe
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score_columns import ScoreColumns
from pollex.services.event_loop import complete
from pollex.services.judging import confirmed, embeds_with, seed_of
from pollex.services.mixed_roles import with_built_in_judge
from pollex.services.options import ModelOptions
from pollex.services.parts import LEDGER, Job
from pollex.services.roles import embedder_for, llm_workers
from pollex.services.scorer import BatchScorer
from pollex.store.segments import SegmentLedger


def model_of(options: ModelOptions, rubrics: RubricSet) -> tuple[ModelOptions, Capabilities]:
    """Confirm the set's model, and probe it.

    Raises:
        WrongUse: Another judge was asked for, or the set's endpoint wasn't confirmed.
        ModelRefused: The endpoint refuses every call.
        ModelUnavailable: It can't be reached.
    """
    options = confirmed(options, rubrics.judge)
    return options, complete(probe(options.endpoint(), max_wait=options.limits.max_wait))


def scores_by_model(
    job: Job, unit: str, conversations: Sequence[Conversation], budget: Budget | None
) -> tuple[ScoreColumns, int]:
    """Score conversations by the set's model; return scores, and how many calls were sent.

    Args:
        unit: Names the ledger segment.
        budget: Shared with other workers.
    """
    ledger = SegmentLedger(Place.at(job.out) / LEDGER, unit)
    try:
        return complete(_scored(job, conversations, ledger, budget)), ledger.calls
    finally:
        ledger.close()


async def _scored(
    job: Job, conversations: Sequence[Conversation], ledger: SegmentLedger, budget: Budget | None
) -> ScoreColumns:
    assert job.capabilities is not None, "a model is asked for"
    record, limits = job.rubrics.judge, job.model.limits
    async with Gateway(job.model.endpoint(), ledger, limits, window=job.capabilities.window, budget=budget) as gateway:
        embedder = embedder_for(None, embeds_with(record, job.model.settings.embedding_model))
        staff = llm_workers(
            job.model, job.rubrics.domain, job.salt, embedder, gateway, job.capabilities, seed_of(record)
        )
        judge = with_built_in_judge(staff, job.rubrics.rubrics, record.learned).roles.judge
        scorer = BatchScorer(job.rubrics, job.judges, job.costs, judge=judge, at_once=2 * limits.concurrency)
        return await scorer.batch(conversations)
