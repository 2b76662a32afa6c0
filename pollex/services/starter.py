"""Stack a set that was learned elsewhere with one that was learned here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pollex.conversations.conversation import Conversation, Label
from pollex.conversations.logs import Logs, positives
from pollex.conversations.splits import block_ids, folds
from pollex.errors import BadLabels, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.graphs.context import Progress
from pollex.measures.arrays import Bools, Floats
from pollex.measures.classification import auc_of_scores
from pollex.measures.intervals import Figure
from pollex.rubrics.learning.results import Learned
from pollex.rubrics.netsat import Score
from pollex.rubrics.rubric_set import RubricSet, digest_of
from pollex.rubrics.starter import (
    PRIOR_WEIGHT,
    Stack,
    StarterRecord,
    learned_with_prefix,
    prefixed,
    scale_of,
    weigh,
    with_prefix,
    z_of,
)
from pollex.services.options import ModelOptions, RunOptions
from pollex.services.score import score, unedited
from pollex.store.resume import step
from pollex.store.store import Store

FOLDS = 5
FEWEST = 2
"""Conversations of each class that are enough where there is a starter."""

Scoring = Callable[[Logs, RubricSet], Sequence[Score]]


def require_same_judge(starter: RubricSet, name: str, model: ModelOptions) -> None:
    """Refuse a starter whose rubrics the judge of the new set can't answer.

    Raises:
        WrongUse: It is judged by another model, or by one that isn't given.
    """
    judged, asked = starter.judge, model.name
    if (judged.built_in and asked is None) or judged.name == asked:
        return
    by = "the built-in judge" if judged.built_in else f"the model {judged.name}"
    remedy = "leave --model out" if judged.built_in else f"give --model {judged.name}"
    raise WrongUse(
        f"the starter {name} is judged by {by}",
        remedy=f"{remedy}, or fit the starter for your judge: `pollex refit LOGS --rubrics {name}`",
    )


def starter_of(starter: Path | RubricSet, model: ModelOptions) -> StarterRecord:
    """Read a starter, and return what a set keeps of it.

    Raises:
        BadRubrics: It can't be read, or was edited after θ was fitted.
        WrongUse: The judge of the new set can't answer its rubrics.
    """
    found, name = unedited(starter), starter.name if isinstance(starter, Path) else "(in memory)"
    require_same_judge(found, name, model)
    return record_of(found, name)


def honest_netsats(store: Store, run: str) -> dict[str, float]:
    """Return out-of-fold NetSAT of training conversations by id; empty without folds."""
    selection, comparison = step(store, run, "select"), step(store, run, "calibrate")
    scores = selection["held_out_scores"]
    return {} if scores is None else dict(zip(comparison["conversations"], scores, strict=True))


def record_of(starter: RubricSet, name: str) -> StarterRecord:
    """Return what a set keeps of its starter; the stack is fitted later."""
    return StarterRecord(
        source=name,
        rubrics=prefixed(starter.rubrics),
        judge=learned_with_prefix(starter.judge),
        theta=starter.theta,
        never=with_prefix(starter.never),
        stack=Stack(own=(0, 1), starter=(0, 1), weights=(PRIOR_WEIGHT, PRIOR_WEIGHT), intercept=0),
        auc={},
        measured_on="",
        helps=False,
    )


def as_set(record: StarterRecord, around: RubricSet) -> RubricSet:
    """Return the starter as a set of its own, to be scored with."""
    changes = {"rubrics": record.rubrics, "judge": record.judge, "theta": record.theta, "never": record.never}
    alone = {"calibrator": None, "guaranteed": None, "starter": None, "rubrics_digest": digest_of(record.rubrics)}
    window = around.window.model_copy(update={"lower": None, "upper": None})
    return around.model_copy(update=changes | alone | {"window": window})


@dataclass(frozen=True, eq=False)
class Labels:
    """Conversations with a label, and both NetSATs as z-scores `[conversation]`."""

    conversations: list[Conversation]
    own: Floats
    starter: Floats

    @property
    def positive(self) -> Bools:
        """Whether each is good `[conversation]`."""
        return positives(self.conversations)


def stacked(
    learned: Learned,
    record: StarterRecord | None,
    logs: Logs,
    honest: dict[str, float],
    *,
    run: RunOptions,
    model: ModelOptions,
    progress: Progress,
) -> Learned:
    """Stack a learned set with its starter; as it is without one."""
    if record is None:
        return learned
    options = replace(run, resume=False)

    def scoring(some: Logs, rubric_set: RubricSet) -> Sequence[Score]:
        found = score(some, rubric_set, reading=ReadOptions(), run=options, model=model, progress=progress)
        return found.scores or ()

    return replace(learned, rubric_set=with_starter(learned.rubric_set, record, logs, honest, scoring))


def with_starter(
    rubric_set: RubricSet,
    record: StarterRecord,
    logs: Logs,
    honest: dict[str, float],
    scoring: Scoring,
) -> RubricSet:
    """Return the set stacked with a starter.

    Args:
        honest: NetSAT of training conversations by rubrics that were chosen without them, by id; empty where there were
            too few for folds.
        scoring: Scores conversations with a set.
    """
    everything = _population(rubric_set, logs)
    own = _netsats(scoring(everything, rubric_set), everything)
    other = _netsats(scoring(everything, as_set(record, rubric_set)), everything)
    both = [id_ for id_ in own if id_ in other]
    scales = (scale_of(np.array([found[id_] for id_ in both])) for found in (own, other))
    own_scale, other_scale = scales
    known = {c.id: c for c in everything if c.label is not Label.NONE and c.id in other}
    trained = [known[id_] for id_ in honest if id_ in known] or [
        c for c in known.values() if c.text_hash[:16] in rubric_set.data.training_hashes
    ]
    judged = Labels(
        trained,
        z_of(np.array([honest.get(c.id, own[c.id]) for c in trained]), own_scale),
        z_of(np.array([other[c.id] for c in trained]), other_scale),
    )
    weights, intercept = _weights(judged, fit=bool(honest))
    stack = Stack(own=own_scale, starter=other_scale, weights=weights, intercept=intercept)
    seen = {c.id for c in trained}
    held_out = [c for id_, c in known.items() if id_ not in seen and id_ in own]
    tested = Labels(
        held_out,
        z_of(np.array([own[c.id] for c in held_out]), own_scale),
        z_of(np.array([other[c.id] for c in held_out]), other_scale),
    )
    areas, where = _areas(judged, tested, stack)
    helps = (areas["both"].value or 0.0) > (areas["own"].value or 0.0)
    found = record.model_copy(update={"stack": stack, "auc": areas, "measured_on": where, "helps": helps})
    return rubric_set.model_copy(update={"starter": found, "notes": (*rubric_set.notes, sentence_of(found))})


def sentence_of(record: StarterRecord) -> str:
    """Say what a starter brings, in a sentence for the notes of a set."""
    parts = (("this set alone", "own"), ("the starter alone", "starter"), ("both", "both"))
    figures = ", ".join(f"{name} {_in_words(record.auc[key])}" for name, key in parts)
    advice = "" if record.helps else "; it does not help here: learn without --starter"
    n = record.auc["both"].n
    return f"Starter {record.source}: AUC of {figures} ({record.measured_on}, n = {n}){advice}."


def _in_words(figure: Figure) -> str:
    if figure.value is None:
        return "undefined"
    ends = "" if figure.low is None or figure.high is None else f" [{figure.low:.2f}, {figure.high:.2f}]"
    return f"{figure.value:.2f}{ends}"


def _population(rubric_set: RubricSet, logs: Logs) -> Logs:
    """Return all conversations if scoring is free, else the labeled ones."""
    kept = tuple(c for c in logs if not c.not_scorable and (rubric_set.judge.built_in or c.label is not Label.NONE))
    return Logs(conversations=kept, fingerprint=logs.fingerprint)


def _netsats(scores: Sequence[Score], logs: Logs) -> dict[str, float]:
    return {c.id: s.netsat for c, s in zip(logs, scores, strict=True) if s.netsat is not None}


def _weights(judged: Labels, *, fit: bool) -> tuple[tuple[float, float], float]:
    """Fit the weights; without out-of-fold NetSAT the set's own is the prior's."""
    # The set has seen these labels: beside its own NetSAT the starter's would seem to say nothing.
    own = judged.own if fit else np.zeros_like(judged.own)
    return weigh(own, judged.starter, judged.positive)


def _areas(judged: Labels, tested: Labels, stack: Stack) -> tuple[dict[str, Figure], str]:
    """Compute AUC of each set alone and of both, held out or cross-fitted."""
    rng = np.random.default_rng(0)
    if len(tested.conversations) and 0 < tested.positive.sum() < len(tested.conversations):
        both, sample = stack.weights[0] * tested.own + stack.weights[1] * tested.starter, tested
        where = "held out"
    else:
        both, sample, where = _crossed(judged), judged, "cross-validated on training conversations"
    columns = {"own": sample.own, "starter": sample.starter, "both": both}
    blocks = block_ids(sample.conversations)
    return {
        name: auc_of_scores(column, sample.positive, rng, together=blocks) for name, column in columns.items()
    }, where


def _crossed(judged: Labels) -> Floats:
    """Compute cross-fitted log-odds of both sets; the prior's weights without folds."""
    try:
        dealt = folds(judged.conversations, FOLDS, 0)
    except BadLabels:
        return PRIOR_WEIGHT * (judged.own + judged.starter)
    out = np.zeros(len(dealt))
    for number in range(FOLDS):
        mine = dealt == number
        weights, _ = weigh(judged.own[~mine], judged.starter[~mine], judged.positive[~mine])
        out[mine] = weights[0] * judged.own[mine] + weights[1] * judged.starter[mine]
    return out
