"""The nodes of `learn`: they call roles and `selection`, store bulk, and return what a person wants to see."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from pollex.agents.roles import Extraction
from pollex.errors import BadRubrics
from pollex.graphs.ask import ask, extract_from, sides
from pollex.graphs.batches import at_once
from pollex.graphs.context import resources
from pollex.graphs.learn.assemble import assemble, compare, with_graded
from pollex.graphs.learn.calibrate import model_of, rating_of
from pollex.graphs.learn.pairs import in_turns, matched_pairs
from pollex.graphs.learn.pool import edited_pool, row_of
from pollex.graphs.learn.reach import answers_of_pool
from pollex.graphs.learn.results import Learned, figures_of, labelled_scores, mean_answers
from pollex.graphs.learn.select import candidates, choose
from pollex.graphs.learn.state import LearnContext, LearnState, Stage
from pollex.graphs.learn.write_rubrics import Rubrics, Written, write_rubrics
from pollex.graphs.score.run import keep_scores
from pollex.rubrics.answers import Unanswered
from pollex.rubrics.rubric import Polarity, Reason, Rubric, content_id, with_reasons
from pollex.rubrics.thumb_model import FOLDS
from pollex.store.resume import step
from pollex.store.rows import fact, rubric_rows

MOST_PAIRS, PAIRS_SHOWN = 30, 5
"""Pairs of conversations that are looked for, and shown with a batch of reasons."""
FIRST = 50
"""Reasons of a side that the state tells; all of them are in the store."""
STAGES: dict[Stage, str] = {"pool": "judge the pool", "held_out": "judge held-out"}


async def recalled(state: LearnState, runtime: Runtime[Any]) -> LearnContext:
    """Return the resources with the run's work as the state has it: what it names is read from the store."""
    live = await resources(runtime, LearnContext)
    work, bulk = live.work, live.bulk
    written = {side: bulk(f"{live.writing}_{side}") for side in state.get("pool", {})}
    pool = {side: tuple(map(Rubric.model_validate, found["pool"])) for side, found in written.items()}
    refused = {cause: n for found in written.values() for cause, n in found["refused"].items()}
    known = [*work.kept, *(rubric for rubrics in pool.values() for rubric in rubrics)]
    if "merged" in state:
        known += map(Rubric.model_validate, bulk("deduplicate")["kept"])
    kept = edited_pool(state["kept"], known) if state.get("kept") else work.kept
    by_id = {rubric.id: rubric for rubric in kept}
    chosen = tuple(by_id[row["id"]] for row in state.get("chosen", ()))
    never = bulk("select")["never"] if "chosen" in state else {}
    recalled = replace(
        work,
        pool=pool,  # type: ignore[arg-type]  # sides are polarities
        refused=refused,
        kept=kept,
        merged=state.get("merged", {}),
        chosen=chosen,
        never_counts=never,
    )
    return replace(live, work=recalled)


def then(more: str, after: str) -> Callable[[LearnState], str]:
    """Return what goes on with the next batch, or with what comes after all of them."""

    def following(state: LearnState) -> str:
        return more if state["batch"] else after

    return following


async def fit_extractor(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Let the extractor learn what separates the classes of the training log."""
    live = await resources(runtime, LearnContext)
    if len(live.work.extractions) < len(live.training):
        with live.tracer.span("fit_extractor", kind="node"):
            await _extractor_fitted(live)
    return _opening(live)


def _opening(live: LearnContext) -> LearnState:
    told: LearnState = {"run": live.run, "settings": live.told_settings, "split": live.split}
    return told


async def _extractor_fitted(live: LearnContext) -> None:
    """Fit the extractor once in a process: one that goes on with a run has an extractor of its own."""
    if "extractor" not in live.fitted:
        await live.roles.extractor.fit(live.training)
        live.fitted.add("extractor")


async def plan_extraction(state: LearnState, runtime: Runtime[Any]) -> LearnState:  # noqa: ARG001
    """Plan the next batch of training conversations without extraction."""
    live = await resources(runtime, LearnContext)
    found = live.work.extractions
    with live.tracer.span("plan_extraction", kind="node") as span:
        left = [c.id for c in live.training if c.id not in found]
        live.progress.start("extract", len(live.training), len(live.training) - len(left))
        await live.store.settle()  # the batch before is durable: a kill costs one batch at most
        batch = left[: live.batch]
        span.outputs(batch)
    outcomes = Counter(one.outcome if isinstance(one, Unanswered) else "extracted" for one in found.values())
    told: LearnState = {"batch": batch, "progress": {"extract": _so_far(len(live.training), len(left), outcomes)}}
    if not batch:
        told["reasons"] = {"sat": _reasons(live, "sat"), "dsat": _reasons(live, "dsat")}
    return told


def _so_far(total: int, left: int, outcomes: Mapping[Any, int]) -> dict[str, Any]:
    return {"done": total - left, "total": total, "outcomes": dict(outcomes)}


def _reasons(live: LearnContext, side: Polarity) -> dict[str, Any]:
    """Tell a side's reasons: how many, and the first ones with a quote."""
    found = live.work.reasons(live.training, side)
    first = [
        {"text": one.text, "quote": one.quotes[0].text if one.quotes else "", "conversation": one.conversation_id}
        for one in found[: FIRST if live.store.texts else 0]
    ]
    return {"count": len(found), "first": first}


async def extract(state: LearnState, runtime: Runtime[Any]) -> LearnState:
    """Extract the reasons of each conversation of the batch."""
    live = await resources(runtime, LearnContext)
    found = live.work.extractions
    left = [id_ for id_ in state["batch"] if id_ not in found]
    await _extractor_fitted(live)
    live.progress.start("extract", len(live.training), len(found))  # where a run goes on here, nothing was planned

    async def one(id_: str) -> None:
        found[id_] = await extract_from(live, live.roles.extractor, live.by_id[id_])
        live.progress.advance("extract")

    await at_once(map(one, left))
    failed = sum(not isinstance(found[id_], Extraction) for id_ in left)
    return {"last": {"node": "extract", "asked": len(left), "failed": failed}}


async def summarize_sat(state: LearnState, runtime: Runtime[Any]) -> LearnState:
    """Write rubrics from reasons for satisfaction."""
    return await _summarize("sat", await recalled(state, runtime))


async def summarize_dsat(state: LearnState, runtime: Runtime[Any]) -> LearnState:
    """Write rubrics from reasons for dissatisfaction."""
    return await _summarize("dsat", await recalled(state, runtime))


async def _summarize(polarity: Polarity, context: LearnContext) -> LearnState:
    """Add new rubrics to the pool, and new reasons to known rubrics."""
    others = [rubric for kind, rubrics in context.work.pool.items() if kind != polarity for rubric in rubrics]
    pairs = in_turns(await asyncio.to_thread(matched_pairs, context, MOST_PAIRS), PAIRS_SHOWN)

    async def grown(batch: Sequence[Reason], pool: Rubrics) -> Written:
        found = await context.roles.summarizer.summarize(batch, [*pool, *others], polarity, next(pairs))
        if isinstance(found, Unanswered):
            return found
        by_id = {rubric.id: rubric for rubric in pool}
        by_id |= {id_: with_reasons(by_id[id_], more) for id_, more in found.supported.items()}
        by_id |= {rubric.id: rubric for rubric in found.rubrics if rubric.id not in by_id}
        return tuple(by_id.values()), found

    return await write_rubrics(f"summarize_{polarity}", polarity, context, grown)


async def deduplicate(state: LearnState, runtime: Runtime[Any]) -> LearnState:
    """Merge rubrics that say the same, with their reasons."""
    context = await recalled(state, runtime)
    pool = [*context.work.pool["sat"], *context.work.pool["dsat"]]
    with context.tracer.span("deduplicate", kind="role", inputs=[rubric.id for rubric in pool]) as span:
        found = await context.roles.deduplicator.deduplicate(pool)
        span.outputs(rubric.id for rubric in found.kept)
    context.store.put(rubric_rows(context.run, [*pool, *found.kept]))
    payload = {"kept": [rubric.model_dump(mode="json") for rubric in found.kept], "merged": found.merged}
    await context.store.write_step(context.run, "deduplicate", payload)
    return {"kept": [row_of(rubric, context.store.texts) for rubric in found.kept], "merged": found.merged}


async def review_pool(state: LearnState, runtime: Runtime[Any]) -> LearnState:
    """Wait for people to edit the pool, where that was asked for: resumed with its rows, as they are to be.

    A resumed node is run again from its beginning, so nothing else is done here.
    """
    context = await recalled(state, runtime)
    if not context.review or not state["kept"]:
        return {"reviewed": False}
    asked: dict[str, Any] = {"pool": state["kept"]}
    while True:
        given = interrupt(asked)
        try:
            kept = edited_pool(given, context.work.kept)
        except BadRubrics as wrong:
            asked = {"pool": state["kept"], "refused": str(wrong)}
        else:
            return {"reviewed": True, "kept": [row_of(rubric, context.store.texts) for rubric in kept]}


async def fit_judge(state: LearnState, runtime: Runtime[Any]) -> LearnState:
    """Let the judge learn its scale for the pool, on training conversations alone."""
    context = await recalled(state, runtime)
    with context.tracer.span("fit_judge", kind="node", inputs=[rubric.id for rubric in context.work.kept]):
        await _fitted(context)
    await context.store.write(rubric_rows(context.run, context.work.kept))
    told = _opening(context)
    told["kept"] = [row_of(one, context.store.texts) for one in context.work.kept]
    return told


async def _fitted(context: LearnContext) -> None:
    """Fit the judge once in a process: one that goes on with a run has a judge of its own."""
    name = content_id("judge", *(rubric.id for rubric in context.work.kept))
    if name not in context.fitted:
        await context.roles.judge.fit(context.training, context.work.kept)
        context.fitted.add(name)


async def plan_pool(state: LearnState, runtime: Runtime[Any]) -> LearnState:
    """Plan the next batch of training conversations for judging the whole pool."""
    return await _plan("pool", await recalled(state, runtime))


async def plan_held_out(state: LearnState, runtime: Runtime[Any]) -> LearnState:
    """Plan the next batch of held-out conversations for judging the chosen rubrics."""
    return await _plan("held_out", await recalled(state, runtime))


async def _plan(stage: Stage, context: LearnContext) -> LearnState:
    await _fitted(context)
    with context.tracer.span(f"plan_{stage}", kind="node") as span:
        asked = {rubric.id for rubric in context.rubrics_asked(stage)}
        conversations, answers = context.asked_of(stage), context.work.answers
        left = [c.id for c in conversations if not answers.get(c.id, {}).keys() >= asked]
        context.progress.start(STAGES[stage], len(conversations), len(conversations) - len(left))
        await context.store.settle()  # the batch before is durable: a kill costs one batch at most
        batch = left[: context.batch]
        await context.roles.judge.prepare([context.by_id[id_] for id_ in batch])
        span.outputs(batch)
    failed = [context.work.failures[c.id] for c in conversations if c.id in context.work.failures]
    failures = Counter(one.outcome for one in failed)
    return {"batch": batch, "progress": {f"judge_{stage}": _so_far(len(conversations), len(left), failures)}}


async def judge_pool(state: LearnState, runtime: Runtime[Any]) -> LearnState:
    """Judge each training conversation of the batch on the whole pool."""
    return await _judge("pool", state["batch"], await recalled(state, runtime))


async def judge_held_out(state: LearnState, runtime: Runtime[Any]) -> LearnState:
    """Judge each held-out conversation of the batch on the chosen rubrics."""
    return await _judge("held_out", state["batch"], await recalled(state, runtime))


async def _judge(stage: Stage, batch: Sequence[str], context: LearnContext) -> LearnState:
    """SAT and DSAT rubrics side by side."""
    await _fitted(context)
    judge, work, questions = context.roles.judge, context.work, sides(context.questions(stage))
    asked = {rubric.id for rubric in context.rubrics_asked(stage)}
    left = [id_ for id_ in batch if not work.answers.get(id_, {}).keys() >= asked]
    conversations = context.asked_of(stage)
    done = sum(work.answers.get(c.id, {}).keys() >= asked for c in conversations)
    context.progress.start(STAGES[stage], len(conversations), done)  # as in `extract`

    async def one(id_: str) -> None:
        found = (ask(context, f"judge_{stage}", judge, context.by_id[id_], side) for side in questions)
        for answers in await asyncio.gather(*found):
            work.take(id_, answers, context.judge_record.options.value)
        context.progress.advance(STAGES[stage])

    await at_once(map(one, left))
    failed = sum(id_ in work.failures for id_ in left)
    return {"last": {"node": f"judge_{stage}", "asked": len(left), "failed": failed}}


async def select(state: LearnState, runtime: Runtime[Any]) -> LearnState:
    """Choose α by cross-validation, then the rubrics, and measure how stable the choice is."""
    context = await recalled(state, runtime)
    await _fitted(context)
    context.progress.start("select", 1)
    with context.tracer.span("select", kind="node", inputs=[rubric.id for rubric in context.work.kept]) as span:
        found = await asyncio.to_thread(choose, context)
        span.outputs(found["chosen"])
    await context.store.write_step(context.run, "select", found)
    context.progress.advance("select")
    by_id = {rubric.id: rubric for rubric in context.work.kept}
    p = found["p"] or {}
    chosen = [
        row_of(by_id[id_], context.store.texts) | found["choices"][id_] | {"p": p.get(id_)} for id_ in found["chosen"]
    ]
    return {
        "chosen": chosen,
        "dropped": found["dropped"],
        "pooled": context.pooled(),
        "alpha": found["alpha"],
        "alphas": found["alphas"],
        "notes": found["notes"],
    }


async def calibrate(state: LearnState, runtime: Runtime[Any]) -> LearnState:
    """Choose the probability model by cross-validation."""
    context = await recalled(state, runtime)
    context.progress.start("calibrate", FOLDS)
    with context.tracer.span("calibrate", kind="node", inputs=[rubric.id for rubric in context.work.chosen]) as span:
        selection: dict[str, Any] = step(context.store, context.run, "select")
        found = await asyncio.to_thread(compare, context, selection)
        span.outputs([found["chosen"], found["why"]])
    await context.store.write_step(context.run, "calibrate", found)
    return {"probability": {name: found[name] for name in ("chosen", "why", "compared")}}


def _with_models(context: LearnContext, found: dict[str, Any]) -> LearnContext:
    """Fit the chosen models on all training conversations."""
    work, pool = context.work, candidates(context)
    seen = {} if found["held_out"] is None else dict(zip(found["conversations"], found["held_out"], strict=True))
    answers = work.probabilities(pool.conversations, work.chosen)
    model = model_of(found["chosen"], answers, work.chosen, pool.conversations)
    if (graded := found.get("grades")) is not None:
        rows = with_graded(context, pool)
        model.rating = rating_of(graded, work.probabilities(rows, work.chosen), work.chosen, rows)
    return replace(context, work=replace(work, thumb_model=model, crossfitted=seen))


async def assess(state: LearnState, runtime: Runtime[Any]) -> LearnState:
    """Fit θ, window and probability on training scores, measure both sides, and assemble the set."""
    context = await recalled(state, runtime)
    await _fitted(context)
    context.progress.start("assess", 1)
    selection, comparison = context.bulk("select"), context.bulk("calibrate")
    with context.tracer.span("assess", kind="node") as span:
        context = await asyncio.to_thread(_with_models, context, comparison)
        pool_values = await answers_of_pool(context)
        rubrics = await asyncio.to_thread(assemble, context, selection, comparison, pool_values)
        span.outputs([rubrics.rubrics_digest])
    work = replace(context.work, rubric_set=rubrics)
    await context.store.write([fact(context.run, "rubric_set", rubrics.rubrics_digest, rubrics)])
    context.progress.advance("assess")
    scores = tuple(labelled_scores(work, context.training, context.held_out))
    keep_scores(context.store, context.run, rubrics, scores)
    means = mean_answers(work, context.training)
    context.result.append(Learned(context.run, rubrics, scores, means, work.unextracted))
    told: LearnState = {"figures": figures_of(rubrics), "digest": rubrics.rubrics_digest, "notes": list(rubrics.notes)}
    missing = len(work.failures | work.unextracted)
    partly = missing or any(c.not_scorable for c in context.logs)
    auc = rubrics.held_out.auc.value if rubrics.held_out else None
    result = {"rubrics": rubrics.rubrics_digest, "unanswered": missing, "auc": auc}
    status: Literal["partial", "done"] = "partial" if partly else "done"
    await asyncio.to_thread(context.store.finish, context.run, status, roles=context.workers, result=result)
    return told
