"""The rubric set made of chosen rubrics: `calibrate` and `assess` as plain functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from pollex.agents.embedded.comments import remarks_of
from pollex.agents.embedded.events.segments import segments_of
from pollex.agents.embedded.evidence import judged_by, unexpected
from pollex.agents.roles import Extraction
from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import positives
from pollex.conversations.splits import block_ids
from pollex.graphs.learn.baselines import Plain
from pollex.graphs.learn.calibrate import (
    compared,
    folds_of,
    grades_compared,
    grades_of,
    stored,
    uncompared,
)
from pollex.graphs.learn.notes import all_but_constant, caveats, dropped_rubrics, reasons_of, refusals, yielded
from pollex.graphs.learn.reach import reach_of
from pollex.graphs.learn.select import candidates, chooser, fully_answered, judged_conversations
from pollex.graphs.learn.state import LearnContext, RunState
from pollex.graphs.learn.weigh import Candidates
from pollex.measures.arrays import Bools, Ints
from pollex.measures.classification import assess
from pollex.measures.drift import counts_of, edges_of
from pollex.measures.intervals import Figure
from pollex.rubrics.alone import alone_of
from pollex.rubrics.answers import SCALES
from pollex.rubrics.figures import probability_figures
from pollex.rubrics.guarantee import GuaranteeRecord
from pollex.rubrics.headlines import twins
from pollex.rubrics.records import (
    LLM,
    Alone,
    AlphaRow,
    CalibrationRecord,
    CalibratorRecord,
    CandidateRow,
    Choice,
    ChosenRubric,
    CurveRow,
    DataRecord,
    Family,
    GradeRow,
    RatingRecord,
    SignalShare,
    SpreadRecord,
    StandingRecord,
    WindowRecord,
    Worth,
)
from pollex.rubrics.rubric import Rubric, is_built_in
from pollex.rubrics.rubric_set import RubricSet, digest_of
from pollex.rubrics.thumb_model import Floats
from pollex.rubrics.worth import share_of, signal_share, worth_of
from pollex.selection.guarantee import guaranteed_window
from pollex.selection.losses import theta_c
from pollex.selection.multi_split import holm, one_sided
from pollex.selection.platt import fit_calibration
from pollex.selection.threshold import fit_window


def compare(context: LearnContext, selection: dict[str, Any]) -> dict[str, Any]:
    """Compare models of the probability by cross-validation on training conversations."""
    work, settings = context.work, context.settings
    pool = candidates(context)
    if any(c.text_hash[:16] in work.learned_from for c in pool.conversations):
        why = "the rubrics were learned from these conversations, so models can't be compared on them: as before"
        unknown = {"grades": grades_compared(None, with_graded(context, pool), graded_fields(context), settings.seed)}
        return uncompared(work.model, why) | unknown | {"conversations": [c.id for c in pool.conversations]}
    rows = with_graded(context, pool)
    choose = chooser(context, pool, selection)
    parts = folds_of(choose, work.probabilities(rows, pool.rubrics), pool.rubrics, rows, settings.seed)
    advance, count = partial(context.progress.advance, "calibrate"), len(pool.conversations)
    thumbs = parts and [replace(fold, out=fold.out[:count], answers=fold.answers[:count]) for fold in parts]
    found = None if thumbs is None else compared(thumbs, pool.conversations, settings.probability, advance)
    grades = grades_compared(parts, rows, graded_fields(context), settings.seed)
    return (
        stored(found, settings.probability) | {"grades": grades} | {"conversations": [c.id for c in pool.conversations]}
    )


def with_graded(context: LearnContext, pool: Candidates) -> list[Conversation]:
    """List the pool's training conversations, then those with a grade that is no thumb."""
    return [*pool.conversations, *judged_conversations(context, context.graded_training, pool.rubrics)]


def graded_fields(context: LearnContext) -> list[str]:
    """Return the fields that may hold grades, the main one first."""
    return [context.logs.label_field, *context.settings.others_rated] if context.logs.label_field else []


def assemble(
    context: LearnContext, selection: dict[str, Any], comparison: dict[str, Any], pool_values: Floats | None = None
) -> RubricSet:
    """Fit θ, window and probability on training scores, then measure both sides.

    Args:
        pool_values: See `reach.answers_of_pool`.
    """
    work, settings = context.work, context.settings
    training = candidates(context).conversations
    held_out = fully_answered(context, context.held_out, work.chosen)
    # One by one in the set's order, as `NetSat` adds up: NumPy's own sum goes by eights, and differs in the last digit.
    scores, tested = (work.matrix(side, work.chosen)[0].cumsum(axis=1)[:, -1] for side in (training, held_out))
    positive, truth = positives(training), positives(held_out)
    theta = theta_c(scores, positive)
    window = fit_window(scores, positive, theta)
    honest = scores if selection["held_out_scores"] is None else np.array(selection["held_out_scores"])
    calibration = fit_calibration(honest, positive)
    rng, blocks = np.random.default_rng([settings.seed, 2]), block_ids(held_out)
    worths, alone = worths_of(context, held_out, truth), alone_by_id(context, training)
    beside = signals_beside(context, held_out)
    standings = standings_of(context, selection, training, held_out)
    asked_when = context.judge_record.scale == "occasion"
    twin_of = twins(work.chosen, work.matrix(training, work.chosen)[0])
    by_model = context.judge_record.kind == LLM and bool(work.extractions)
    notes = [
        *(yielded(work) if by_model else ()),
        *selection["notes"],
        *refusals(work.refused),
        *caveats(context, truth),
        *all_but_constant(work, alone),
    ]
    calibrator, arrays = calibrator_record(context, comparison, training, held_out)
    plain = Plain(training, positive, held_out)
    rubric_set = RubricSet(
        pollex=version("pollex"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        run=context.run,
        roles=context.roles.names,
        prompts=context.prompts,
        domain=context.profile,
        rubrics=tuple(
            ChosenRubric(
                **r.model_dump(),
                written=r.text,
                choice=Choice(**selection["choices"][r.id]),
                standing=standings.get(r.id),
                family=Family(**family) if (family := selection.get("families", {}).get(r.id)) else None,
                worth=worths.get(r.id),
                signals=beside.get(r.id, ()),
                unexpected=unexpected(r),
                alone=alone[r.id],
                twin_of=twin_of.get(r.id, ""),
                never_came_up=never_came_up(work, training, r) if asked_when and not r.answered_by else None,
            )
            for r in work.chosen
        ),
        theta=theta,
        window=WindowRecord(lower=window.lower, upper=window.upper, precision=window.precision),
        guaranteed=guarantee(selection, positive, theta, tested, truth, blocks),
        calibration=CalibrationRecord(slope=calibration.slope, intercept=calibration.intercept),
        policy=settings.policy,
        alpha=selection["alpha"],
        alphas=tuple(AlphaRow(**row) for row in selection["alphas"]),
        judge=judge_record(context),
        data=data_record(context, training, held_out),
        training=assess(scores, positive, theta, window.confident(scores), rng, together=block_ids(training)),
        held_out=assess(tested, truth, theta, window.confident(tested), rng, together=blocks) if held_out else None,
        baselines=tuple(plain.baselines(truth, tested, rng)),
        notes=tuple(notes),
        dropped=tuple(dropped_rubrics(context, selection)),
        reasons=reasons_of(context),
        rubrics_digest=digest_of(work.chosen),
        calibrator=calibrator,
        segments=segments_of(training, held_out),
        remarks=remarks_of((*training, *held_out)),
        spread=spread_of(np.append(scores, tested)),
        found_nothing=found_nothing(work) if by_model else None,
        never={id_: value for id_, value in work.never_counts.items() if id_ in {r.id for r in work.chosen}},
    )
    support = rubric_set.support
    said = () if support.enough else (f"Probabilities are {support}.",)
    reach = reach_of(context, rubric_set.rubrics, held_out, truth, plain, selection, pool_values)
    return rubric_set.model_copy(update={"notes": (*rubric_set.notes, *said), "reach": reach}).with_arrays(arrays)


def spread_of(netsat: Floats) -> SpreadRecord:
    """Record how NetSAT is spread `[conversation]`."""
    edges = edges_of(netsat)
    return SpreadRecord(edges=tuple(edges.tolist()), counts=tuple(counts_of(netsat, edges).astype(int).tolist()))


def worths_of(context: LearnContext, held_out: Sequence[Conversation], up: Bools) -> dict[str, Worth]:
    """Return how each rubric separates held-out conversations, by rubric."""
    if not held_out:
        return {}
    held = context.work.held(held_out, context.work.chosen)
    return {rubric.id: worth_of(held[:, i], up) for i, rubric in enumerate(context.work.chosen)}


def signals_beside(context: LearnContext, held_out: Sequence[Conversation]) -> dict[str, tuple[SignalShare, ...]]:
    """Return how often further signals happened where each rubric held and elsewhere, by rubric."""
    names = sorted({name for one in held_out for name in one.signals})
    if not names:
        return {}
    held, chosen = context.work.held(held_out, context.work.chosen), context.work.chosen
    rows = {name: np.array([name in one.signals for one in held_out]) for name in names}
    happened = {name: np.array([one.signals.get(name, False) for one in held_out]) for name in names}
    return {
        rubric.id: tuple(signal_share(name, held[rows[name], i], happened[name][rows[name]]) for name in names)
        for i, rubric in enumerate(chosen)
    }


def standings_of(
    context: LearnContext,
    selection: dict[str, Any],
    training: Sequence[Conversation],
    held_out: Sequence[Conversation],
) -> dict[str, StandingRecord]:
    """Return how far labels bear the chosen rubrics out, by id; empty where no labels could tell.

    The words of a model's rubrics come from the training conversations, so only the held-out ones can prove them.
    Rubrics that were given have all labels.
    """
    work = context.work
    if (p := selection.get("p")) is not None:
        return {r.id: StandingRecord(p=p[r.id], n=len(training), by="halvings") for r in work.chosen}
    given = not work.pool
    asked = [*training, *held_out] if given else held_out
    up = positives(asked)
    if not len(up) or up.all() or not up.any():
        return {}
    sat = np.array([rubric.polarity == "sat" for rubric in work.chosen], dtype=bool)
    adjusted = holm(one_sided(work.held(asked, work.chosen), up, sat)).tolist()
    by: Literal["all", "held-out"] = "all" if given else "held-out"
    return {r.id: StandingRecord(p=p, n=len(up), by=by) for r, p in zip(work.chosen, adjusted, strict=True)}


def never_came_up(work: RunState, training: Sequence[Conversation], rubric: Rubric) -> Figure:
    """Return the share of answered training conversations in which a rubric's occasion never came up."""
    answered = [c.id for c in training if rubric.id in work.distributions.get(c.id, {})]
    return share_of(sum((id_, rubric.id) in work.never for id_ in answered), len(answered))


def found_nothing(work: RunState) -> Figure:
    """Return the share of training conversations in which a model that read them found no reason."""
    read = [found for found in work.extractions.values() if isinstance(found, Extraction)]
    silent = sum(not found.dropped and all(is_built_in(reason.source) for reason in found.reasons) for found in read)
    return share_of(silent, len(read))


def alone_by_id(context: LearnContext, training: Sequence[Conversation]) -> dict[str, Alone]:
    """Return each rubric's figures alone on training conversations, by id."""
    work, options = context.work, SCALES[context.judge_record.scale]
    values, _ = work.matrix(training, work.chosen)
    rng, blocks, up = np.random.default_rng([context.settings.seed, 5]), block_ids(training), positives(training)
    return {
        rubric.id: alone_of(
            values[:, i],
            [work.picked(c.id, rubric.id, options) for c in training],
            up,
            judged_by(rubric, model=context.judge_record.kind == LLM and not rubric.answered_by),
            rng,
            blocks,
        )
        for i, rubric in enumerate(work.chosen)
    }


def guarantee(
    selection: dict[str, Any],
    positive: Bools,
    theta: float,
    tested: Floats,
    truth: Bools,
    blocks: Ints,
) -> GuaranteeRecord | None:
    """Compute the window with a guarantee, from out-of-fold scores; None without them."""
    if selection["held_out_scores"] is None:
        return None
    found = guaranteed_window(np.array(selection["held_out_scores"]), positive, theta)
    return GuaranteeRecord.of(found, theta, tested, truth, blocks)


def calibrator_record(
    context: LearnContext,
    comparison: dict[str, Any],
    training: Sequence[Conversation],
    held_out: Sequence[Conversation],
) -> tuple[CalibratorRecord, bytes]:
    """Return the chosen probability model with the figures of both sides, and its arrays."""
    from pollex.calibration.storage import packed  # scikit-learn comes with it, and takes a second to import

    work, rng = context.work, np.random.default_rng([context.settings.seed, 4])
    model = work.thumb_model
    assert model is not None, "`calibrate` comes before `assess`"
    pack = packed(model.model, model.rating)
    seen, unseen = comparison["held_out"], model.probability(work.probabilities(held_out, work.chosen))
    positive, truth = positives(training), positives(held_out)
    share = float(positive.mean())
    record = CalibratorRecord(
        chosen=comparison["chosen"],
        why=comparison.get("why", ""),
        curve=tuple(CurveRow(**row) for row in comparison.get("curve", ())),
        compared=tuple(CandidateRow(**row) for row in comparison["compared"]),
        labels=len(training),
        training=probability_figures(np.array(seen), positive, share, rng, block_ids(training)) if seen else None,
        held_out=probability_figures(unseen, truth, share, rng, block_ids(held_out)) if held_out else None,
        rubrics=model.rubrics,
        facts={name: value for name, value in pack.facts.items() if name not in ("questionnaire", "beside")},
        rating=rating_record(context, comparison, held_out, pack.facts),
    )
    return record, pack.arrays


def rating_record(
    context: LearnContext, comparison: dict[str, Any], held_out: Sequence[Conversation], facts: dict[str, Any]
) -> RatingRecord | None:
    """Return the model of grades with its figures; None where the labels are no grades."""
    if (found := comparison.get("grades")) is None:
        return None
    from pollex.measures.distributions import Predictions
    from pollex.measures.distributions import assess as assess_grades

    work, model = context.work, context.work.thumb_model
    assert model is not None, "`calibrate` comes before `assess`"
    values = np.array(next(iter(found["scales"].values())))
    held_out = [*held_out, *fully_answered(context, context.graded_held_out, work.chosen)]
    grades, _ = grades_of(held_out, list(found["scales"])[:1])
    known = np.isin(grades[:, 0], values) if grades.shape[1] else np.zeros(len(held_out), dtype=bool)
    measured = None
    if known.any():
        proba = model.grades(work.probabilities(held_out, work.chosen))[known]
        place = np.searchsorted(values, grades[known, 0])
        rng, blocks = np.random.default_rng([context.settings.seed, 8]), block_ids(held_out)[known]
        one = assess_grades(Predictions(proba, place, blocks, tuple(values.tolist())), rng, smooth=False)
        measured = GradeRow(name=found["chosen"], n=one.n, rmse=one.rmse, pearson=one.pearson)
    own = {name: value for name, value in facts["beside"].items() if name != "questionnaire"}
    return RatingRecord(**found, held_out=measured, facts=own)


def judge_record(context: LearnContext) -> Any:
    """Return the judge's record with its state for the chosen rubrics."""
    judge, chosen = context.roles.judge, {rubric.id for rubric in context.work.chosen}
    learned = {id_: what for id_, what in judge.learned.items() if id_ in chosen}
    return context.judge_record.model_copy(update={"learned": learned, "fingerprint": judge.fingerprint})


def data_record(
    context: LearnContext, training: Sequence[Conversation], held_out: Sequence[Conversation]
) -> DataRecord:
    """Describe the data that the set was learned from."""
    logs, settings = context.logs, context.settings
    written = bool(context.work.pool)  # nothing is written where rubrics are given: they are only fitted
    # One that could not be judged has given its reasons all the same.
    hashes = tuple(sorted({c.text_hash[:16] for c in (context.training if written else training)}))
    return DataRecord(
        fingerprint=logs.fingerprint,
        conversations=len(logs),
        positives=logs.counts[Label.POSITIVE],
        negatives=logs.counts[Label.NEGATIVE],
        unlabeled=logs.counts[Label.NONE],
        not_scorable=logs.counts[Label.POSITIVE]
        + logs.counts[Label.NEGATIVE]
        - len(context.training)
        - len(context.held_out),
        training=len(training),
        held_out=len(held_out),
        test_fraction=settings.test_fraction,
        seed=settings.seed,
        training_hashes=hashes if written else (),
        fitted_hashes=() if written else hashes,
    )
