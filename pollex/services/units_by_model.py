"""The unit of work of scoring with a model: what is paid for is kept in the unit's own ledger segment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pollex.conversations.conversation import Conversation
from pollex.formats.places import Place
from pollex.formats.scores import rows
from pollex.gateway.budget import Budget
from pollex.gateway.capabilities import Capabilities
from pollex.gateway.gateway import Gateway
from pollex.gateway.probe import probe
from pollex.graphs.ask import ask_sides
from pollex.rubrics.answers import Answer, Unanswered
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.event_loop import complete
from pollex.services.judging import confirmed, embeds_with, seed_of
from pollex.services.mixed_roles import with_built_in_judge
from pollex.services.options import ModelOptions
from pollex.services.parts import LEDGER, Job
from pollex.services.roles import embedder_for, llm_workers
from pollex.store.segments import SegmentLedger

Answers = list[Answer | Unanswered]


def model_of(options: ModelOptions, rubrics: RubricSet) -> tuple[ModelOptions, Capabilities]:
    """Confirm the set's model, and probe it.

    Raises:
        WrongUse: Another judge was asked for, or the set's endpoint wasn't confirmed.
        ModelRefused: The endpoint refuses every call.
        ModelUnavailable: It can't be reached.
    """
    options = confirmed(options, rubrics.judge)
    return options, complete(probe(options.endpoint(), max_wait=options.limits.max_wait))


def rows_by_model(
    job: Job, unit: str, conversations: Sequence[Conversation], budget: Budget | None
) -> tuple[list[dict[str, Any]], int]:
    """Score conversations by the set's model; return rows as `pollex score` writes them, and how many calls were sent.

    Args:
        unit: Names the ledger segment.
        budget: Shared with other workers.
    """
    ledger = SegmentLedger(Place.at(job.out) / LEDGER, unit)
    try:
        answers = complete(_answers(job, conversations, ledger, budget))
    finally:
        ledger.close()
    scores = job.rubrics.scorer_of(job.costs).score_all(answers, job.judges)
    return list(rows(scores, job.rubrics, job.judges)), ledger.calls


async def _answers(
    job: Job, conversations: Sequence[Conversation], ledger: SegmentLedger, budget: Budget | None
) -> dict[str, Answers]:
    assert job.capabilities is not None, "rows by a model are asked for"
    questions, record = job.rubrics.questions, job.rubrics.judge
    free = asyncio.Semaphore(2 * job.model.limits.concurrency)
    async with Gateway(
        job.model.endpoint(), ledger, job.model.limits, window=job.capabilities.window, budget=budget
    ) as gateway:
        embedder = embedder_for(None, embeds_with(record, job.model.settings.embedding_model))
        staff = llm_workers(
            job.model, job.rubrics.domain, job.salt, embedder, gateway, job.capabilities, seed_of(record)
        )
        judge = with_built_in_judge(staff, job.rubrics.rubrics, record.learned).roles.judge
        await judge.prepare(conversations)

        async def asked(one: Conversation) -> Answers:
            async with free:
                return await ask_sides(judge, one, questions)

        found = await asyncio.gather(*map(asked, conversations))
    return {one.id: answers for one, answers in zip(conversations, found, strict=True)}
