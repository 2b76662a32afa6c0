"""The steps from reasons to rubrics: batches in sequence, each building on those before."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from pollex.agents.roles import Revision, Summary
from pollex.graphs.learn.state import LearnContext, LearnState
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import Polarity, Reason, Rubric, is_built_in_source

RubricTuple = tuple[Rubric, ...]
BatchOutcome = tuple[RubricTuple, Summary | Revision] | Unanswered
"""All rubrics after a batch, and what was answered; or why there is nothing."""

WriteBatch = Callable[[Sequence[Reason], RubricTuple], Awaitable[BatchOutcome]]
"""Asks a role about a batch of reasons and the rubrics so far."""


async def fill_pool_of_polarity_by_batches(
    name: str,
    polarity: Polarity,
    live: LearnContext,
    write: WriteBatch,
) -> LearnState:
    """Fill the pool of a polarity.

    A batch without an answer changes nothing. Reasons of which a model made nothing are shown again
    with the next
    batch: two that say the same may stand in different ones.

    Args:
        name: Name of the step.
    """
    reasons = live.reasons(polarity)
    size = live.material.settings.mini_batch
    sides = []
    for built_in in (False, True):
        sides.append(
            [reason for reason in reasons if is_built_in_source(reason.source) is built_in]
        )
    batches = []
    for side in sides:
        for start in range(0, len(side), size):
            batches.append(side[start : start + size])

    live.progress.start(name, len(batches))
    rubrics: RubricTuple = ()
    refused: Counter[str] = Counter()
    left: list[Reason] = []
    for fresh in batches:
        batch = fresh if is_built_in_source(fresh[0].source) else [*left, *fresh]
        with live.tracer.span(name, kind="role", inputs=[reason.id for reason in batch]) as span:
            written = await write(batch, rubrics)
            if isinstance(written, Unanswered):
                span.failed(f"{written.outcome}: {written.detail}")
                refused[
                    f"a batch of {len(batch)} {polarity} reasons: {written.outcome} {written.detail}"
                ] += 1
            else:
                rubrics, answered = written
                span.outputs(rubric.id for rubric in answered.rubrics)
                refused.update(answered.refused)
                if isinstance(answered, Summary):
                    left = list_unused_reasons(batch, answered)[: size // 2]
                else:
                    left = []

        live.progress.advance(name)

    payload = {
        "pool": [rubric.model_dump(mode="json") for rubric in rubrics],
        "refused": dict(refused),
    }
    await live.store.write_step(live.run, name, payload)
    return {"pool": {polarity: live.rows(rubrics)}, "refused": dict(refused)}


def list_unused_reasons(batch: Sequence[Reason], answered: Summary) -> list[Reason]:
    """Return the reasons that stand under no rubric."""
    used: set[str] = set()
    for rubric in answered.rubrics:
        used.update(rubric.reason_ids)
    for reasons in answered.supported.values():
        for reason in reasons:
            used.add(reason.id)
    return [reason for reason in batch if reason.id not in used]
