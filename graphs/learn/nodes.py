"""The nodes of `learn`: they call roles and `selection`, store bulk, and return what a person wants to see."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from pollex.agents.llm.pairs import match_opposite_pairs, rotate_pairs
from pollex.agents.roles import Rewording, Rewriter, split_by_polarity
from pollex.errors import BadRubrics
from pollex.graphs.batches import (
    ask_judge_and_store_answers,
    await_all_or_cancel_others,
    extract_and_store_reasons,
)
from pollex.graphs.context import Context, get_resources_of_thread
from pollex.graphs.findings import shorten_text_to_state_line
from pollex.graphs.learn.assemble import (
    assemble_rubric_set,
    compute_netsat_of_set,
    get_held_out_values_of_pool,
)
from pollex.graphs.learn.state import LearnContext, LearnState
from pollex.graphs.learn.write_rubrics import (
    BatchOutcome,
    RubricTuple,
    fill_pool_of_polarity_by_batches,
)
from pollex.rubrics.answers import Question, Unanswered
from pollex.rubrics.edits import read_edited_pool
from pollex.rubrics.learning.choice import choose_rubrics_of_run
from pollex.rubrics.learning.crossfit import CROSSFIT_FOLDS
from pollex.rubrics.learning.results import (
    LabelledScore,
    Learned,
    compute_mean_answers,
    list_held_out_figures,
)
from pollex.rubrics.learning.thumbs import FittedThumbs, compare_thumb_models
from pollex.rubrics.merging import merge_equal_rubrics
from pollex.rubrics.rubric import (
    Polarity,
    Reason,
    Rubric,
    add_reasons_to_rubric,
    is_built_in_source,
)
from pollex.rubrics.rubric_set import RubricSet
from pollex.rubrics.score import Score, ScoreColumns
from pollex.store.rows import make_rubric_rows, make_score_block
from pollex.store.rubric_sets import make_rubric_set_rows
from pollex.store.store import Store

MAX_PAIRS_MATCHED, MAX_PAIRS_SHOWN_PER_BATCH = 30, 5
"""Pairs of conversations that are looked for, and shown with a batch of reasons."""
MAX_LIST_VALUES_SHOWN = 8
"""Numbers of a list that the state tells one by one."""
MAX_REASONS_CALLED_FEW = 10
"""Reasons of a side, of a whole log, of which each may make a rubric by itself."""
MAX_QUOTES_SHOWN = 3
"""Quotes of a reason that the state tells."""
MAX_REASONS_SHOWN = 50
"""Reasons of a side that the state tells; all of them are in the store."""
PROGRESS_NAMES_OF_JUDGING = {"judge_pool": "judge the pool", "judge_held_out": "judge held-out"}
"""What the progress of a judging stage is called."""


async def fit_extractor(state: LearnState, runtime: Runtime[Context]) -> LearnState:  # noqa: ARG001
    """Let the extractor learn what separates the classes of the training log."""
    live = await get_resources_of_thread(runtime, LearnContext)
    if len(live.extractions) < len(live.material.training):
        with live.tracer.span("fit_extractor", kind="node"):
            await live.fit(live.roles.extractor)
    return live.opening


async def extract(state: LearnState, runtime: Runtime[Context]) -> LearnState:  # noqa: ARG001
    """Extract the reasons of the next batch of training conversations."""
    live = await get_resources_of_thread(runtime, LearnContext)
    ids = [c.id for c in live.material.training]
    extractions = live.extractions

    async def one(id_: str) -> None:
        extractions[id_] = await extract_and_store_reasons(
            live,
            live.roles.extractor,
            live.by_id[id_],
        )
        live.progress.advance("extract")

    if left := [id_ for id_ in ids if id_ not in extractions]:
        await live.fit(live.roles.extractor)

    live.progress.start("extract", len(ids), len(ids) - len(left))
    await await_all_or_cancel_others(map(one, left[: live.batch]))
    await live.store.settle()  # the batch is durable: a kill costs one batch at most
    outcomes = []
    for extraction in extractions.values():
        outcomes.append(extraction.outcome if isinstance(extraction, Unanswered) else "extracted")

    return {
        "progress": {
            "extract": _describe_extraction_progress(
                len(ids), max(len(left) - live.batch, 0), outcomes
            )
        },
        "reasons": {
            "sat": _describe_reasons_of_side(live, "sat"),
            "dsat": _describe_reasons_of_side(live, "dsat"),
        },
    }


def _describe_extraction_progress(
    total: int, left: int, outcomes: Iterable[str]
) -> dict[str, object]:
    return {
        "done": total - left,
        "total": total,
        "outcomes": dict(Counter(outcomes)),
    }


def _describe_reasons_of_side(live: LearnContext, side: Polarity) -> dict[str, object]:
    reasons = live.reasons(side)
    first = []
    for reason in reasons[: MAX_REASONS_SHOWN if live.store.texts else 0]:
        first.append(
            {
                "text": reason.text,
                "quotes": [
                    shorten_text_to_state_line(quote.text)
                    for quote in reason.quotes[:MAX_QUOTES_SHOWN]
                ],
                "conversation": reason.conversation_id,
            }
        )

    return {"count": len(reasons), "first": first}


def make_router_to_next_batch_of_stage(
    stage: str, after: Sequence[str]
) -> Callable[[LearnState], Sequence[str]]:
    """Return what goes on with the next batch of a stage, or with what comes after all of them."""

    def following(state: LearnState) -> Sequence[str]:
        progress = state["progress"][stage]
        return after if progress["done"] == progress["total"] else [stage]

    return following


async def summarize_sat(state: LearnState, runtime: Runtime[Context]) -> LearnState:
    """Write rubrics from reasons for satisfaction."""
    return await _summarize_side("sat", state, runtime)


async def summarize_dsat(state: LearnState, runtime: Runtime[Context]) -> LearnState:
    """Write rubrics from reasons for dissatisfaction."""
    return await _summarize_side("dsat", state, runtime)


async def _summarize_side(
    polarity: Polarity,
    state: LearnState,
    runtime: Runtime[Context],
) -> LearnState:
    """Add new rubrics to the pool, and new reasons to known rubrics."""
    live = await get_resources_of_thread(runtime, LearnContext)
    # rubrics of the other side are shown, so that none is written twice
    pools = live.material_at(state).pool
    others = [rubric for kind, rubrics in pools.items() if kind != polarity for rubric in rubrics]
    matched = await asyncio.to_thread(
        match_opposite_pairs,
        live.material.training,
        live.extractions,
        MAX_PAIRS_MATCHED,
    )
    # pairs of conversations that are alike but for the thumb, some a batch
    pairs = rotate_pairs(matched, MAX_PAIRS_SHOWN_PER_BATCH)
    few = (
        sum(not is_built_in_source(reason.source) for reason in live.reasons(polarity))
        <= MAX_REASONS_CALLED_FEW
    )

    async def grown(batch: Sequence[Reason], pool: RubricTuple) -> BatchOutcome:
        summary = await live.roles.summarizer.summarize(
            batch,
            [*pool, *others],
            polarity,
            next(pairs),
            few=few,
        )
        if isinstance(summary, Unanswered):
            return summary

        # rubrics that got more reasons, and then new ones
        by_id = {rubric.id: rubric for rubric in pool}
        by_id |= {
            id_: add_reasons_to_rubric(by_id[id_], more) for id_, more in summary.supported.items()
        }
        by_id |= {rubric.id: rubric for rubric in summary.rubrics if rubric.id not in by_id}
        return tuple(by_id.values()), summary

    return await fill_pool_of_polarity_by_batches(f"summarize_{polarity}", polarity, live, grown)


async def deduplicate(state: LearnState, runtime: Runtime[Context]) -> LearnState:
    """Merge rubrics that say the same, with their reasons."""
    live = await get_resources_of_thread(runtime, LearnContext)
    # rubrics of the same words are merged without asking
    written = live.material_at(state).pool
    pool = [*written["sat"], *written["dsat"]]
    distinct, equal = merge_equal_rubrics(pool)  # nobody has to be asked about these
    with live.tracer.span(
        "deduplicate", kind="role", inputs=[rubric.id for rubric in pool]
    ) as span:
        deduplication = await live.roles.deduplicator.deduplicate(distinct)
        span.outputs(rubric.id for rubric in deduplication.kept)

    # all are stored, with what each was merged into
    live.store.put(make_rubric_rows(live.run, [*pool, *deduplication.kept]))
    merged_equal = {}
    for id_, into in equal.items():
        merged_equal[id_] = deduplication.merged.get(into, into)
    merged = merged_equal | deduplication.merged
    payload = {
        "kept": [rubric.model_dump(mode="json") for rubric in deduplication.kept],
        "merged": merged,
    }
    await live.store.write_step(live.run, "deduplicate", payload)

    return {
        "kept": live.rows(deduplication.kept),
        "merged": merged,
        "mirrors": [list(pair) for pair in deduplication.mirrors],
    }


async def reword(state: LearnState, runtime: Runtime[Context]) -> LearnState:
    """Ask once for better words for rubrics that are hard to judge, before they are paid for."""
    live = await get_resources_of_thread(runtime, LearnContext)
    rubrics = live.material_at(state).kept
    rewriter: Rewriter | None = live.roles.further.get("rewriter")
    rewording = Rewording(rubrics=rubrics)
    if rewriter is not None and rubrics:
        with live.tracer.span(
            "reword", kind="role", inputs=[rubric.id for rubric in rubrics]
        ) as span:
            rewording = await rewriter.reword(rubrics)
            span.outputs(rewording.reworded.values())

    # words change ids: what was merged is named anew
    live.store.put(make_rubric_rows(live.run, rewording.rubrics))
    payload = {"kept": [rubric.model_dump(mode="json") for rubric in rewording.rubrics]}
    await live.store.write_step(live.run, "reword", payload)
    named = rewording.reworded

    mirrors = []
    for pair in state["mirrors"]:
        mirrors.append([named.get(rubric_id, rubric_id) for rubric_id in pair])
    return {
        "kept": live.rows(rewording.rubrics),
        "reworded": named,
        "merged": {duplicate: named.get(into, into) for duplicate, into in state["merged"].items()},
        "mirrors": mirrors,
    }


async def review_pool(state: LearnState, runtime: Runtime[Context]) -> LearnState:
    """Wait for people to edit the pool, where that was asked for: resumed with its rows, as they are to be.

    A resumed node is run again from its beginning, so nothing else is done here.
    """
    live = await get_resources_of_thread(runtime, LearnContext)
    if not live.review or not state["kept"]:
        return {"reviewed": False}

    request: dict[str, object] = {"pool": state["kept"]}
    # asked again, with the reason, as long as the rows are none
    while True:
        edited_rows = interrupt(request)
        try:
            rubrics = read_edited_pool(edited_rows, live.material_at(state).kept)
        except BadRubrics as wrong:
            request = {"pool": state["kept"], "refused": str(wrong)}
        else:
            return {"reviewed": True, "kept": live.rows(rubrics)}


async def fit_judge(state: LearnState, runtime: Runtime[Context]) -> LearnState:
    """Let the judge learn its scale for the pool, on training conversations alone."""
    live = await get_resources_of_thread(runtime, LearnContext)
    rubrics = live.material_at(state).kept
    with live.tracer.span("fit_judge", kind="node", inputs=[rubric.id for rubric in rubrics]):
        await live.fit(live.roles.judge, rubrics)

    await live.store.write(make_rubric_rows(live.run, rubrics))
    judge = live.roles.judge
    return {
        **live.opening,
        "kept": live.rows(rubrics),
        "judged_by": {rubric.id: rubric.answered_by or judge.name for rubric in rubrics},
        "learned": describe_what_judge_learned(judge.learned, rubrics),
    }


def add_rubric_texts(
    rows: Mapping[str, Mapping[str, object]], rubrics: Sequence[Rubric]
) -> dict[str, dict[str, object]]:
    """Return rows by rubric with the rubric's text in each: a reader of a state knows no ids."""
    texts = {rubric.id: shorten_text_to_state_line(rubric.text) for rubric in rubrics}
    rows_with_texts: dict[str, dict[str, object]] = {}
    for id_, row in rows.items():
        if id_ in texts:
            rows_with_texts[id_] = {"text": texts[id_], **row}
        else:
            rows_with_texts[id_] = dict(row)

    return rows_with_texts


def describe_what_judge_learned(
    learned: Mapping[str, object], rubrics: Sequence[Rubric]
) -> dict[str, object]:
    """Return what a judge learned for each rubric of a pool: plain figures; of what is large, how much there is.

    Figures by name stand beside the rubric's text: a reader of a state knows no ids.
    """
    in_words: dict[str, object] = {}
    for rubric in rubrics:
        learned_values = learned.get(rubric.id)
        if isinstance(learned_values, Mapping):
            figures = {name: abbreviate_value(value) for name, value in learned_values.items()}
            in_words[rubric.id] = {"text": shorten_text_to_state_line(rubric.text), **figures}
        elif learned_values is not None:
            in_words[rubric.id] = abbreviate_value(learned_values)

    return in_words


def abbreviate_value(value: object) -> object:
    """Return a number or a short text as it is, and of anything larger how much there is."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return shorten_text_to_state_line(value)
    if (
        isinstance(value, list | tuple)
        and len(value) <= MAX_LIST_VALUES_SHOWN
        and all(isinstance(number, int | float) for number in value)
    ):
        return list(value)
    if hasattr(value, "__len__"):
        return f"{len(value)} values"
    return shorten_text_to_state_line(str(value))


async def judge_pool(state: LearnState, runtime: Runtime[Context]) -> LearnState:
    """Judge the next batch of training conversations on the whole pool."""
    live = await get_resources_of_thread(runtime, LearnContext)
    material = live.material_at(state)
    ids = [c.id for c in (*material.training, *material.graded_training)]

    return await _judge_next_batch(
        "judge_pool",
        ids,
        material.kept,
        live,
        material.kept,
    )


async def judge_held_out(state: LearnState, runtime: Runtime[Context]) -> LearnState:
    """Judge the next batch of held-out conversations on the chosen rubrics."""
    live = await get_resources_of_thread(runtime, LearnContext)
    material = live.material_at(state)
    ids = [c.id for c in (*material.held_out, *material.graded_held_out)]

    return await _judge_next_batch(
        "judge_held_out",
        ids,
        material.chosen,
        live,
        material.kept,
    )


async def _judge_next_batch(
    stage: Literal["judge_pool", "judge_held_out"],
    ids: Sequence[str],
    rubrics: Sequence[Rubric],
    live: LearnContext,
    pool: Sequence[Rubric],
) -> LearnState:
    """Ask about a batch, SAT and DSAT rubrics side by side; the judge was fitted to the pool."""
    judge = live.roles.judge
    table = live.material.table
    shown = PROGRESS_NAMES_OF_JUDGING[stage]
    questions = split_by_polarity(
        [Question.about(rubric, live.material.judge_record.scale) for rubric in rubrics]
    )
    # conversations that lack an answer, a batch of them
    left = table.left(ids, rubrics)
    batch = left[: live.batch]

    async def one(id_: str) -> None:
        left = []
        for side in questions:
            questions_left = []
            for question in side:
                if question.id not in table.values.get(id_, {}):
                    questions_left.append(question)
            left.append(questions_left)

        calls = []
        for unanswered in left:
            if unanswered:
                calls.append(
                    ask_judge_and_store_answers(live, stage, judge, live.by_id[id_], unanswered)
                )
        for answers in await asyncio.gather(*calls):
            table.take(id_, answers)

        live.progress.advance(shown)

    await live.fit(judge, pool)
    live.progress.start(shown, len(ids), len(ids) - len(left))
    await judge.prepare([live.by_id[id_] for id_ in batch])
    await await_all_or_cancel_others(map(one, batch))
    await live.store.settle()  # the batch is durable: a kill costs one batch at most
    # what the state says of the progress so far
    failures = (table.failures[id_].outcome for id_ in ids if id_ in table.failures)
    progress = _describe_extraction_progress(len(ids), len(left) - len(batch), failures)
    update: LearnState = {"progress": {stage: progress}}
    if stage == "judge_pool":
        summary = table.summary(live.material.training, pool)
        update["pooled"] = add_rubric_texts(summary, pool)
    return update


async def select(state: LearnState, runtime: Runtime[Context]) -> LearnState:
    """Choose α by cross-validation, then the rubrics, and measure how stable the choice is."""
    live = await get_resources_of_thread(runtime, LearnContext)
    material = live.material_at(state)
    live.progress.start("select", 1)

    with live.tracer.span(
        "select", kind="node", inputs=[rubric.id for rubric in material.kept]
    ) as span:
        choice = await asyncio.to_thread(choose_rubrics_of_run, material)
        span.outputs(choice["chosen"])

    await live.store.write_step(live.run, "select", choice)
    live.progress.advance("select")
    # the choice beside the rubrics' own rows
    rows = {row["id"]: row for row in live.rows(material.kept)}
    p = choice["p"] or {}
    chosen = []
    for id_ in choice["chosen"]:
        chosen.append(rows[id_] | choice["choices"][id_] | {"p": p.get(id_)})

    return {
        "chosen": chosen,
        "dropped": add_rubric_texts(choice["dropped"], material.kept),
        "pooled": add_rubric_texts(
            material.table.summary(material.training, material.kept), material.kept
        ),
        "alpha": choice["alpha"],
        "alphas": choice["alphas"],
        "notes": choice["notes"],
    }


async def calibrate(state: LearnState, runtime: Runtime[Context]) -> LearnState:
    """Choose the probability model by cross-validation."""
    live = await get_resources_of_thread(runtime, LearnContext)
    material = live.material_at(state)
    live.progress.start("calibrate", CROSSFIT_FOLDS)

    with live.tracer.span(
        "calibrate", kind="node", inputs=[rubric.id for rubric in material.chosen]
    ) as span:
        comparison = await asyncio.to_thread(
            compare_thumb_models,
            material,
            live.bulk("select"),
        )
        span.outputs([comparison["chosen"], comparison["why"]])

    await live.store.write_step(live.run, "calibrate", comparison)
    return {"probability": {name: comparison[name] for name in ("chosen", "why", "compared")}}


async def assess(state: LearnState, runtime: Runtime[Context]) -> LearnState:
    """Fit θ, window and probability on all answers, measure both sides, and assemble the set."""
    live = await get_resources_of_thread(runtime, LearnContext)
    material = live.material_at(state)
    selection = live.bulk("select")
    comparison = live.bulk("calibrate")
    await live.fit(live.roles.judge, material.kept)
    live.progress.start("assess", 1)

    with live.tracer.span("assess", kind="node") as span:
        # models, then figures and the set; threads, so that progress goes on
        fitted = await asyncio.to_thread(FittedThumbs.of, material, comparison)
        values = await get_held_out_values_of_pool(live, material)
        rubrics, scores = await asyncio.to_thread(
            assemble_rubric_set,
            live,
            material,
            fitted,
            selection,
            comparison,
            await compute_netsat_of_set(live, material),
            values,
        )
        span.outputs([rubrics.rubrics_digest])

    # the set is kept before its scores
    await live.store.write(list(make_rubric_set_rows(live.run, rubrics)))
    live.progress.advance("assess")
    store_scores(live.store, live.run, rubrics, scores)
    live.result.append(
        Learned(
            live.run,
            rubrics,
            scores,
            compute_mean_answers(material),
            live.unextracted,
        )
    )
    # conversations without all answers make the run partial
    missing = len(material.table.failures | live.unextracted)
    partly = bool(missing) or any(c.not_scorable for c in material.logs)
    auc = rubrics.held_out.auc.value if rubrics.held_out else None
    result = {
        "rubrics": rubrics.rubrics_digest,
        "unanswered": missing,
        "auc": auc,
    }
    await live.finish(result, partly=partly)
    window = rubrics.window

    return {
        "figures": list_held_out_figures(rubrics),
        "theta": rubrics.theta,
        "window": {"lower": window.lower, "upper": window.upper, "precision": window.precision},
        "model": await asyncio.to_thread(describe_probability_model, rubrics),
        "digest": rubrics.rubrics_digest,
        "notes": list(rubrics.notes),
    }


def describe_probability_model(rubrics: RubricSet) -> dict[str, object]:
    """Return the model of the probability: its name, λ of a network, and what each rubric weighs in it."""
    if rubrics.calibrator is None or (model := rubrics.thumb_model) is None:
        return {}

    # what weighs most comes first
    texts = {rubric.id: rubric.text for rubric in rubrics.all_rubrics}
    in_order = sorted(
        zip(model.rubrics, model.weights(), strict=True),
        key=lambda pair: -abs(pair[1]),
    )
    weights = []
    for id_, weight in in_order:
        weights.append(
            {
                "id": id_,
                "text": shorten_text_to_state_line(texts.get(id_, "")),
                "log_odds": round(weight, 3),
            }
        )

    strength = getattr(model.model, "strength_", None)
    shrunk = {} if strength is None else {"λ": strength}
    return {
        "name": rubrics.calibrator.chosen,
        **shrunk,
        "weights": weights,
    }


def store_scores(
    store: Store,
    run: str,
    rubric_set: RubricSet,
    scores: Sequence[LabelledScore],
) -> None:
    """Store the result of each labeled conversation, for `pollex trace`."""
    netsat = rubric_set.scorer_of()
    stored_scores = list[Score]()
    for measured in scores:
        score = Score(
            conversation_id=measured.conversation_id,
            outcome=measured.outcome,
        )
        if measured.netsat is not None:
            score = netsat.read(
                measured.conversation_id,
                measured.netsat,
                measured.probability,
            )

        stored_scores.append(score)

    store.put([make_score_block(run, ScoreColumns.of(stored_scores, ()))])
