"""From the judge's answers to a rubric set: what `select` and `assess` do, as plain functions of a run's work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from pollex.agents.baseline import tfidf_scores
from pollex.agents.rubrics import Rubric
from pollex.conversations.model import Conversation, Label
from pollex.conversations.splits import folds
from pollex.errors import BadLabels, BadRubrics
from pollex.graphs.calibrating import compared, stored
from pollex.graphs.figures import figure, figures, probability_figures
from pollex.graphs.guarantees import GuaranteeRecord
from pollex.graphs.learn.state import LearnContext, positives
from pollex.graphs.rubric_records import (
    AlphaRow,
    Baseline,
    CalibrationRecord,
    CalibratorRecord,
    CandidateRow,
    Choice,
    ChosenRubric,
    DataRecord,
    DroppedRubric,
    WindowRecord,
)
from pollex.graphs.rubric_set import RubricSet, digest_of
from pollex.selection.alpha import choose_alpha
from pollex.selection.conformal import guaranteed_window
from pollex.selection.losses import theta_c
from pollex.selection.metrics import assess, auc_difference
from pollex.selection.policies import select
from pollex.selection.pool import Selection
from pollex.selection.probability import fit_calibration
from pollex.selection.stability import stability
from pollex.selection.threshold import Window, fit_window

FOLDS = 5
DEFAULT_ALPHA = 1.0
LEAST_ANSWERED = 0.5
SMALL = 50
"""Held-out conversations of the smaller class below which a figure is called noisy."""

Floats = npt.NDArray[np.float64]


def choose(context: LearnContext) -> dict[str, Any]:
    """Chooses rubrics on training conversations; all that `assemble` must know of it, as JSON values."""
    kept, unjudged = judged_rubrics(context)
    training = judged_conversations(context, context.training, kept)
    values, answered = context.work.matrix(training, kept)
    positive, sat, ids = positives(training), np.array([r.polarity == "sat" for r in kept]), [r.id for r in kept]
    settings = context.settings
    alpha, table, held_out_scores, notes = weigh(context, values, positive, sat, ids, training)
    rng = np.random.default_rng(settings.seed)
    chosen = select(values, positive, sat, ids, settings.budget, alpha, rng, settings.policy)
    shares = stable_shares(context, values, positive, sat, ids, alpha)
    if not answered.all():
        notes.append(
            f"{(~answered).sum()} of {answered.size} training answers are missing; each counts as its rubric's mean"
        )
    return {
        "alpha": alpha,
        "alphas": table,
        "held_out_scores": held_out_scores,
        "chosen": [ids[step.index] for step in chosen.steps],
        "choices": choices(chosen, ids, shares),
        "dropped": dropped(chosen, ids, shares) | unjudged,
        "notes": notes,
    }


def judged_rubrics(context: LearnContext) -> tuple[list[Rubric], dict[str, Any]]:
    """The rubrics that at least half of the training conversations were answered on, and why others are out."""
    kept, unjudged = [], {}
    _, answered = context.work.matrix(context.training, context.work.kept)
    for rubric, share in zip(context.work.kept, answered.mean(axis=0), strict=True):
        if share >= LEAST_ANSWERED:
            kept.append(rubric)
        else:
            unjudged[rubric.id] = {"loss": None, "beaten_by": None, "stability": None, "answered": float(share)}
    if not kept:
        raise BadRubrics(
            f"no rubric to choose from: of {len(context.work.kept)} written, none has answers for half of the log",
            remedy="see `pollex trace` of this run for what went wrong",
        )
    return kept, unjudged


def judged_conversations(
    context: LearnContext, conversations: Sequence[Conversation], rubrics: Sequence[Rubric]
) -> list[Conversation]:
    """Those with an answer to any of the rubrics."""
    _, answered = context.work.matrix(conversations, rubrics)
    return [c for c, row in zip(conversations, answered, strict=True) if row.any()]


def weigh(
    context: LearnContext,
    values: Floats,
    positive: npt.NDArray[np.bool_],
    sat: npt.NDArray[np.bool_],
    ids: Sequence[str],
    training: Sequence[Conversation],
) -> tuple[float, list[dict[str, Any]], list[float] | None, list[str]]:
    """α, its table, the scores of conversations by rubrics chosen without them, and notes."""
    settings = context.settings
    try:
        dealt = folds(training, FOLDS, settings.seed)
    except BadLabels as error:
        alpha = DEFAULT_ALPHA if settings.alpha is None else settings.alpha
        return alpha, [], None, [f"α = {alpha:g} was not cross-validated: {error.what}"]
    grid = None if settings.alpha is None else (settings.alpha,)
    choice = choose_alpha(values, positive, sat, ids, settings.budget, dealt, settings.policy, grid, settings.seed)
    table = [
        {"alpha": row.alpha, "mean_auc": row.mean, "deviation": row.deviation, "folds": row.folds}
        for row in choice.table
    ]
    return choice.alpha, table, choice.held_out.tolist(), []


def stable_shares(
    context: LearnContext,
    values: Floats,
    positive: npt.NDArray[np.bool_],
    sat: npt.NDArray[np.bool_],
    ids: Sequence[str],
    alpha: float,
) -> Floats | None:
    """How often each rubric is chosen in bootstrap resamples [rubric]; None where that was switched off."""
    settings = context.settings
    if not settings.resamples:
        return None
    context.progress.start("stability", settings.resamples)
    return stability(
        values,
        positive,
        sat,
        ids,
        settings.budget,
        alpha,
        np.random.default_rng([settings.seed, 1]),
        policy=settings.policy,
        resamples=settings.resamples,
        progress=lambda _done, _wanted: context.progress.advance("stability"),
    )


def choices(chosen: Selection, ids: Sequence[str], shares: Floats | None) -> dict[str, Any]:
    """For each chosen rubric, the terms of the set when it came in."""
    return {
        ids[one.index]: {
            "step": number,
            "loss": one.loss,
            "correctness": one.correctness,
            "sharpness": one.sharpness,
            "stability": None if shares is None else float(shares[one.index]),
        }
        for number, one in enumerate(chosen.steps, start=1)
    }


def dropped(chosen: Selection, ids: Sequence[str], shares: Floats | None) -> dict[str, Any]:
    """For each rubric that was not chosen, its last loss and what was chosen in its place."""
    return {
        ids[one.index]: {
            "loss": one.loss,
            "beaten_by": None if one.beaten_by is None else ids[one.beaten_by],
            "stability": None if shares is None else float(shares[one.index]),
        }
        for one in chosen.drops
    }


def compare(context: LearnContext, selection: dict[str, Any]) -> dict[str, Any]:
    """Which model gives probabilities, and what it says of training conversations that it did not see."""
    work, settings = context.work, context.settings
    kept, _ = judged_rubrics(context)
    training = judged_conversations(context, context.training, kept)
    found = compared(
        work.matrix(training, kept)[0],
        work.probabilities(training, kept),
        kept,
        training,
        settings.budget,
        selection["alpha"],
        settings.policy,
        settings.seed,
        progress=lambda: context.progress.advance("calibrate"),
    )
    return stored(found) | {"conversations": [c.id for c in training]}


def assemble(context: LearnContext, selection: dict[str, Any], comparison: dict[str, Any]) -> RubricSet:
    """θ, window and probability from training scores alone, then the figures of both sides."""
    work, settings = context.work, context.settings
    kept, _ = judged_rubrics(context)
    training = judged_conversations(context, context.training, kept)
    held_out = judged_conversations(context, context.held_out, work.chosen)
    # One by one in the set's order, as `NetSat` adds up: NumPy's own sum goes by eights, and differs in the last digit.
    scores, tested = (work.matrix(side, work.chosen)[0].cumsum(axis=1)[:, -1] for side in (training, held_out))
    positive, truth = positives(training), positives(held_out)
    theta = theta_c(scores, positive)
    window = fit_window(scores, positive, theta)
    honest = scores if selection["held_out_scores"] is None else np.array(selection["held_out_scores"])
    calibration = fit_calibration(honest, positive)
    rng = np.random.default_rng([settings.seed, 2])
    notes = [*selection["notes"], *refusals(work.refused), *caveats(context, truth)]
    calibrator, arrays = calibrator_record(context, comparison, training, held_out)
    rubric_set = RubricSet(
        pollex=version("pollex"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        run=context.run,
        roles=context.roles.names,
        prompts=context.prompts,
        domain=context.profile,
        rubrics=tuple(
            ChosenRubric(**r.model_dump(), written=r.text, choice=Choice(**selection["choices"][r.id]))
            for r in work.chosen
        ),
        theta=theta,
        window=WindowRecord(lower=window.lower, upper=window.upper, precision=window.precision),
        guaranteed=guarantee(selection, positive, theta, tested, truth),
        calibration=CalibrationRecord(slope=calibration.slope, intercept=calibration.intercept),
        policy=settings.policy,
        alpha=selection["alpha"],
        alphas=tuple(AlphaRow(**row) for row in selection["alphas"]),
        judge=judge_record(context),
        data=data_record(context, training, held_out),
        training=figures(assess(scores, positive, theta, window, rng)),
        held_out=figures(assess(tested, truth, theta, window, rng)) if held_out else None,
        baselines=tuple(baselines(training, positive, held_out, truth, tested, rng)),
        notes=tuple(notes),
        dropped=tuple(dropped_rubrics(context, selection)),
        reasons=reasons_of(context),
        rubrics_digest=digest_of(work.chosen),
        calibrator=calibrator,
    )
    support = rubric_set.support
    said = () if support.enough else (f"Probabilities are {support}.",)
    return rubric_set.model_copy(update={"notes": (*rubric_set.notes, *said)}).with_arrays(arrays)


def guarantee(
    selection: dict[str, Any],
    positive: npt.NDArray[np.bool_],
    theta: float,
    tested: Floats,
    truth: npt.NDArray[np.bool_],
) -> GuaranteeRecord | None:
    """The window with a guarantee, which only scores by rubrics chosen without the conversation can give."""
    if selection["held_out_scores"] is None:
        return None
    found = guaranteed_window(np.array(selection["held_out_scores"]), positive, theta)
    return GuaranteeRecord.of(found, theta, tested, truth)


def calibrator_record(
    context: LearnContext,
    comparison: dict[str, Any],
    training: Sequence[Conversation],
    held_out: Sequence[Conversation],
) -> tuple[CalibratorRecord, bytes]:
    """What gives probabilities, with the figures of both sides, and its arrays."""
    from pollex.calibration.kept import packed  # scikit-learn comes with it, and takes a second to import

    work, rng = context.work, np.random.default_rng([context.settings.seed, 4])
    model = work.thumb_model
    assert model is not None, "`calibrate` comes before `assess`"
    pack = packed(model.model)
    seen, unseen = comparison["held_out"], model.probability(work.probabilities(held_out, work.chosen))
    positive, truth = positives(training), positives(held_out)
    share = float(positive.mean())
    record = CalibratorRecord(
        chosen=comparison["chosen"],
        compared=tuple(CandidateRow(**row) for row in comparison["compared"]),
        labels=len(training),
        training=probability_figures(np.array(seen), positive, share, rng) if seen else None,
        held_out=probability_figures(unseen, truth, share, rng) if held_out else None,
        rubrics=model.rubrics,
        facts={name: value for name, value in pack.facts.items() if name != "questionnaire"},
    )
    return record, pack.arrays


def judge_record(context: LearnContext) -> Any:
    """The judge with what it has learnt about the chosen rubrics."""
    judge, chosen = context.roles.judge, {rubric.id for rubric in context.work.chosen}
    learned = {id_: what for id_, what in judge.learned.items() if id_ in chosen}
    return context.judge_record.model_copy(update={"learned": learned, "fingerprint": judge.fingerprint})


def data_record(
    context: LearnContext, training: Sequence[Conversation], held_out: Sequence[Conversation]
) -> DataRecord:
    """What it was learnt from."""
    logs, settings = context.logs, context.settings
    return DataRecord(
        fingerprint=logs.fingerprint,
        conversations=len(logs),
        positives=logs.counts[Label.POSITIVE],
        negatives=logs.counts[Label.NEGATIVE],
        unlabelled=logs.counts[Label.NONE],
        not_scorable=logs.counts[Label.POSITIVE]
        + logs.counts[Label.NEGATIVE]
        - len(context.training)
        - len(context.held_out),
        training=len(training),
        held_out=len(held_out),
        test_fraction=settings.test_fraction,
        seed=settings.seed,
        training_hashes=tuple(sorted(c.text_hash[:16] for c in training)),
    )


def baselines(
    training: Sequence[Conversation],
    positive: npt.NDArray[np.bool_],
    held_out: Sequence[Conversation],
    truth: npt.NDArray[np.bool_],
    tested: Floats,
    rng: np.random.Generator,
) -> list[Baseline]:
    """TF-IDF with logistic regression, and the constant that says what most training conversations are."""
    nothing = Window(None, None)
    constant = 1.0 if positive.mean() >= 0.5 else -1.0
    simple = {
        "TF-IDF + logistic regression": tfidf_scores(training, positive, held_out),
        "constant": (np.full(len(training), constant), np.full(len(held_out), constant)),
    }
    return [
        Baseline(
            name=name,
            training=figures(assess(seen, positive, 0.0, nothing, rng)),
            held_out=figures(assess(unseen, truth, 0.0, nothing, rng)) if held_out else None,
            advantage=figure(auc_difference(tested, unseen, truth, rng)) if held_out else None,
        )
        for name, (seen, unseen) in simple.items()
    ]


def caveats(context: LearnContext, truth: npt.NDArray[np.bool_]) -> list[str]:
    """What keeps a reader from trusting the figures too far."""
    notes = []
    if not len(truth):
        notes.append(
            "Nothing was held out: there are no figures on conversations that the rubrics were not learnt from."
        )
    elif (smaller := int(min(truth.sum(), (~truth).sum()))) < SMALL:
        notes.append(
            f"The smaller class has {smaller} held-out conversations: figures differ a lot from split to split, "
            "so read the intervals, not the figures."
        )
    n_sat, n_dsat = (sum(r.polarity == kind for r in context.work.chosen) for kind in ("sat", "dsat"))
    if (n_sat, n_dsat) != context.settings.budget:
        notes.append(f"The pool had fewer rubrics than the budget: {n_sat} SAT and {n_dsat} DSAT were chosen.")
    if failed := len(context.work.failures):
        notes.append(f"{failed} conversations lack an answer; `pollex trace` of this run says why.")
    if silent := len(context.work.unextracted):
        notes.append(f"{silent} training conversations gave no reasons; `pollex trace` of this run says why.")
    return notes


def refusals(refused: dict[str, int]) -> list[str]:
    """One line a cause for rubrics that were written and not taken."""
    return [f"{count} rubric texts were refused: {cause}" for cause, count in sorted(refused.items())]


def dropped_rubrics(context: LearnContext, selection: dict[str, Any]) -> list[DroppedRubric]:
    """Every rubric of the pool that is not in the set, duplicates first."""
    work = context.work
    texts = {rubric.id: rubric.text for rubrics in work.pool.values() for rubric in rubrics}
    texts |= {rubric.id: rubric.text for rubric in work.kept}
    pool = {rubric.id: rubric for rubrics in work.pool.values() for rubric in rubrics}
    duplicates = [
        DroppedRubric(
            id=id_,
            text=texts[id_],
            polarity=pool[id_].polarity,
            support=len(pool[id_].reason_ids),
            reason=f"says the same as “{texts[into]}”",
            duplicate_of=into,
        )
        for id_, into in work.merged.items()
    ]
    kept = {rubric.id: rubric for rubric in work.kept}
    return duplicates + [
        DroppedRubric(
            id=id_,
            text=texts[id_],
            polarity=kept[id_].polarity,
            support=len(kept[id_].reason_ids),
            reason=why_dropped(drop, texts),
            loss=drop["loss"],
            stability=drop["stability"],
        )
        for id_, drop in selection["dropped"].items()
    ]


def why_dropped(drop: dict[str, Any], texts: dict[str, str]) -> str:
    """In words."""
    if "answered" in drop:
        return f"answered on only {drop['answered']:.0%} of the training conversations"
    if drop["beaten_by"] is None:
        return "the budget of its kind is 0"
    return f"the set was better with “{texts[drop['beaten_by']]}”"


def reasons_of(context: LearnContext) -> tuple[Any, ...]:
    """The reasons behind the chosen rubrics."""
    wanted = {id_ for rubric in context.work.chosen for id_ in rubric.reason_ids}
    every = [*context.work.reasons(context.training, "sat"), *context.work.reasons(context.training, "dsat")]
    return tuple(reason for reason in every if reason.id in wanted)
