"""The nodes of `learn`: they call roles and `selection`, and store the results.

A node first looks for results that the run already stored: that is all resuming needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import Send

from pollex.graphs.ask import ask, extract_from, sides
from pollex.graphs.context import resources
from pollex.graphs.learn.assemble import assemble, compare, with_graded
from pollex.graphs.learn.calibrate import model_of, rating_of
from pollex.graphs.learn.pairs import in_turns, matched_pairs
from pollex.graphs.learn.reach import answers_of_pool
from pollex.graphs.learn.select import candidates, choose
from pollex.graphs.learn.state import Item, LearnContext, LearnState, Stage
from pollex.graphs.learn.write_rubrics import Rubrics, Written, write_rubrics
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import Polarity, Reason, Rubric, with_reasons
from pollex.rubrics.thumb_model import FOLDS
from pollex.store.resume import step
from pollex.store.rows import fact, rubric_rows

MOST_PAIRS, PAIRS_SHOWN = 30, 5
"""Pairs of conversations that are looked for, and shown with a batch of reasons."""
STAGES: dict[Stage, str] = {"pool": "judge the pool", "held_out": "judge held-out"}


async def fit_extractor(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Let the extractor learn what separates the classes of the training log."""
    context = await resources(runtime, LearnContext)
    if len(context.work.extractions) < len(context.training):
        with context.tracer.span("fit_extractor", kind="node"):
            await context.roles.extractor.fit(context.training)
    return {}


async def plan_extraction(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Plan the next batch of training conversations without extraction."""
    context = await resources(runtime, LearnContext)
    with context.tracer.span("plan_extraction", kind="node") as span:
        left = [c.id for c in context.training if c.id not in context.work.extractions]
        context.progress.start("extract", len(context.training), len(context.training) - len(left))
        await context.store.settle()  # the batch before is durable: a kill costs one batch at most
        batch = left[: context.batch]
        span.outputs(batch)
    return {"batch": batch}


def fan_out_extraction(state: LearnState) -> list[Send] | list[str]:
    """Make one task for each conversation of the batch; then go on to summaries."""
    return extractions(state) or ["summarize_dsat"]


def extractions(state: LearnState) -> list[Send]:
    """Make one task for each conversation of the batch."""
    return [Send("extract", Item(conversation_id=id_)) for id_ in state["batch"]]


async def extract(state: Item, runtime: Runtime[Any]) -> LearnState:
    """Extract the reasons of one conversation."""
    context = await resources(runtime, LearnContext)
    conversation = context.by_id[state["conversation_id"]]
    context.work.extractions[conversation.id] = await extract_from(context, context.roles.extractor, conversation)
    context.progress.advance("extract")
    return {}


async def summarize_sat(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Write rubrics from reasons for satisfaction."""
    await _summarize("sat", await resources(runtime, LearnContext))
    return {}


async def summarize_dsat(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Write rubrics from reasons for dissatisfaction."""
    await _summarize("dsat", await resources(runtime, LearnContext))
    return {}


async def _summarize(polarity: Polarity, context: LearnContext) -> None:
    """Add new rubrics to the pool, and new reasons to known rubrics."""

    others = [rubric for kind, rubrics in context.work.pool.items() if kind != polarity for rubric in rubrics]
    wanted = step(context.store, context.run, f"summarize_{polarity}") is None
    pairs = in_turns(matched_pairs(context, MOST_PAIRS) if wanted else (), PAIRS_SHOWN)

    async def grown(batch: Sequence[Reason], pool: Rubrics) -> Written:
        found = await context.roles.summarizer.summarize(batch, [*pool, *others], polarity, next(pairs))
        if isinstance(found, Unanswered):
            return found
        by_id = {rubric.id: rubric for rubric in pool}
        by_id |= {id_: with_reasons(by_id[id_], more) for id_, more in found.supported.items()}
        by_id |= {rubric.id: rubric for rubric in found.rubrics if rubric.id not in by_id}
        return tuple(by_id.values()), found

    await write_rubrics(f"summarize_{polarity}", polarity, context, grown)


async def deduplicate(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Merge rubrics that say the same, with their reasons."""
    context = await resources(runtime, LearnContext)
    work = context.work
    if (stored := step(context.store, context.run, "deduplicate")) is not None:
        work.kept = tuple(Rubric.model_validate(rubric) for rubric in stored["kept"])
        work.merged = stored["merged"]
        return {}
    pool = [*work.pool["sat"], *work.pool["dsat"]]
    with context.tracer.span("deduplicate", kind="role", inputs=[rubric.id for rubric in pool]) as span:
        found = await context.roles.deduplicator.deduplicate(pool)
        span.outputs(rubric.id for rubric in found.kept)
    work.kept, work.merged = found.kept, found.merged
    context.store.put(rubric_rows(context.run, [*pool, *found.kept]))
    payload = {"kept": [rubric.model_dump(mode="json") for rubric in found.kept], "merged": found.merged}
    await context.store.write_step(context.run, "deduplicate", payload)
    return {}


async def fit_judge(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Let the judge learn its scale for the pool, on training conversations alone."""
    context = await resources(runtime, LearnContext)
    with context.tracer.span("fit_judge", kind="node", inputs=[rubric.id for rubric in context.work.kept]):
        await context.roles.judge.fit(context.training, context.work.kept)
    return {}


async def plan_pool(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Plan the next batch of training conversations for judging the whole pool."""
    return await _plan("pool", await resources(runtime, LearnContext))


async def plan_held_out(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Plan the next batch of held-out conversations for judging the chosen rubrics."""
    return await _plan("held_out", await resources(runtime, LearnContext))


async def _plan(stage: Stage, context: LearnContext) -> LearnState:
    with context.tracer.span(f"plan_{stage}", kind="node") as span:
        asked = {rubric.id for rubric in context.rubrics_asked(stage)}
        conversations = context.asked_of(stage)
        left = [c.id for c in conversations if not context.work.answers.get(c.id, {}).keys() >= asked]
        context.progress.start(STAGES[stage], len(conversations), len(conversations) - len(left))
        await context.store.settle()  # the batch before is durable: a kill costs one batch at most
        batch = left[: context.batch]
        await context.roles.judge.prepare([context.by_id[id_] for id_ in batch])
        span.outputs(batch)
    return {"batch": batch}


def fan_out_pool(state: LearnState) -> list[Send] | str:
    """Make one task for each conversation of the batch; then go on to selection."""
    return _judgings(state["batch"], "pool") or "select"


def fan_out_held_out(state: LearnState) -> list[Send] | str:
    """Make one task for each conversation of the batch; then go on to assessment."""
    return _judgings(state["batch"], "held_out") or "assess"


def _judgings(batch: Sequence[str], stage: Stage) -> list[Send]:
    return [Send(f"judge_{stage}", Item(conversation_id=id_)) for id_ in batch]


async def judge_pool(state: Item, runtime: Runtime[Any]) -> LearnState:
    """Judge one training conversation on the whole pool."""
    await _judge("pool", state["conversation_id"], await resources(runtime, LearnContext))
    return {}


async def judge_held_out(state: Item, runtime: Runtime[Any]) -> LearnState:
    """Judge one held-out conversation on the chosen rubrics."""
    await _judge("held_out", state["conversation_id"], await resources(runtime, LearnContext))
    return {}


async def _judge(stage: Stage, conversation_id: str, context: LearnContext) -> None:
    """SAT and DSAT rubrics side by side."""
    conversation, judge, name = context.by_id[conversation_id], context.roles.judge, f"judge_{stage}"
    asked = (ask(context, name, judge, conversation, side) for side in sides(context.questions(stage)))
    for answers in await asyncio.gather(*asked):
        context.work.take(conversation_id, answers, context.judge_record.options.value)
    context.progress.advance(STAGES[stage])


async def select(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Choose α by cross-validation, then rubrics (greedily, if nothing else is set), and measure how stable that is."""
    context = await resources(runtime, LearnContext)
    stored = step(context.store, context.run, "select")
    if stored is None:
        context.progress.start("select", 1)
        with context.tracer.span("select", kind="node", inputs=[rubric.id for rubric in context.work.kept]) as span:
            stored = await asyncio.to_thread(choose, context)
            span.outputs(stored["chosen"])
        await context.store.write_step(context.run, "select", stored)
        context.progress.advance("select")
    context.work.never_counts = stored["never"]
    by_id = {rubric.id: rubric for rubric in context.work.kept}
    context.work.chosen = tuple(by_id[id_] for id_ in stored["chosen"])
    return {}


async def calibrate(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Choose the probability model by cross-validation, then fit it on all training conversations."""
    context = await resources(runtime, LearnContext)
    work = context.work
    found = step(context.store, context.run, "calibrate")
    if found is None:
        context.progress.start("calibrate", FOLDS)
        with context.tracer.span("calibrate", kind="node", inputs=[rubric.id for rubric in work.chosen]) as span:
            selection: dict[str, Any] = step(context.store, context.run, "select")
            found = await asyncio.to_thread(compare, context, selection)
            span.outputs([found["chosen"], found["why"]])
        await context.store.write_step(context.run, "calibrate", found)
    if found["held_out"] is not None:
        work.crossfitted = dict(zip(found["conversations"], found["held_out"], strict=True))
    pool = candidates(context)
    answers = work.probabilities(pool.conversations, work.chosen)
    work.thumb_model = await asyncio.to_thread(model_of, found["chosen"], answers, work.chosen, pool.conversations)
    if (graded := found.get("grades")) is not None:
        rows = with_graded(context, pool)
        answers = work.probabilities(rows, work.chosen)
        work.thumb_model.rating = await asyncio.to_thread(rating_of, graded, answers, work.chosen, rows)
    return {}


async def assess(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Fit θ and window on training scores, measure both sides, and assemble the set."""
    context = await resources(runtime, LearnContext)
    context.progress.start("assess", 1)
    with context.tracer.span("assess", kind="node") as span:
        selection: dict[str, Any] = step(context.store, context.run, "select")
        comparison: dict[str, Any] = step(context.store, context.run, "calibrate")
        pool_values = await answers_of_pool(context)
        rubrics = await asyncio.to_thread(assemble, context, selection, comparison, pool_values)
        span.outputs([rubrics.rubrics_digest])
    context.work.rubric_set = rubrics
    row = fact(context.run, "rubric_set", rubrics.rubrics_digest, rubrics)
    await context.store.write([row])
    context.progress.advance("assess")
    return {}
