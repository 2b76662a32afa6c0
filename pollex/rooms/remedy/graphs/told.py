"""What the state of a remedy tells of replies: the first pairs, those that fell the most, and means so far."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from pollex.graphs.findings import (
    MAX_RESULTS_SHOWN,
    MAX_WORST_RESULTS_SHOWN,
    shorten_text_to_state_line,
)
from pollex.measures.arrays import Floats
from pollex.rooms.remedy.agents.assistant import AssistantReply, NoReply
from pollex.rooms.remedy.graphs.trial import Trial
from pollex.rooms.remedy.measures.proofs import FAILING_STRATUM, OLD_ARM

TARGET_QUESTION_INDEX = 0
"""Place of the target among the values of a reply."""


def describe_replies(
    trial: Trial,
    names: Sequence[str],
    where: Sequence[int] | None = None,
    *,
    texts: bool,
) -> Any:
    """Return what a trial came to so far, for the state.

    Args:
        names: Of the arms, the old one first.
        where: Contexts that were asked last; None for all.
        texts: Whether replies may be told.
    """
    # [context, arm]: mean over replies of what the target asks
    target = _compute_target_means(trial)
    # contexts with a reply that was judged
    answered = []
    for n in range(len(trial.contexts)) if where is None else where:
        if np.isfinite(target[n]).any():
            answered.append(n)

    rows = []
    for n in answered[:MAX_RESULTS_SHOWN]:
        rows.append(_describe_context(trial, n, names, target, texts=texts))

    # contexts where the change fell the most; those that didn't fall aren't told
    fell = _compute_worst_fall(target)
    worst = []
    for n in np.argsort(-fell, kind="stable")[:MAX_WORST_RESULTS_SHOWN].tolist():
        if fell[n] > 0:
            worst.append(n)

    return {
        "first": rows,
        "worst": [_describe_context(trial, n, names, target, texts=texts) for n in worst],
        "so_far": _compute_arm_means(target, names),
    }


def _compute_target_means(trial: Trial) -> Floats:
    """Return how far each arm does what the target asks, 0 … 1 `[context, arm]`; NaN where nobody can tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of contexts that weren't asked yet
        return np.asarray(np.nanmean(trial.arrays.values[:, :, :, TARGET_QUESTION_INDEX], axis=2))


def _compute_worst_fall(target: Floats) -> Floats:
    """Return by how much the worst new reply is behind the old one `[context]`; −1 where that can't be told."""
    if target.shape[1] < 2:
        return np.full(len(target), -1.0)

    behind = target[:, OLD_ARM : OLD_ARM + 1] - target[:, OLD_ARM + 1 :]
    return np.asarray(np.where(np.isfinite(behind), behind, -1.0).max(axis=1))


def _describe_context(
    trial: Trial,
    n: int,
    names: Sequence[str],
    target: Floats,
    *,
    texts: bool,
) -> dict[str, object]:
    """Return a context with what each arm replied there, and how far that does what the target asks."""
    row: dict[str, object] = {
        "id": trial.contexts[n].conversation.id,
        "failed before": bool(trial.arrays.stratum[n] == FAILING_STRATUM),
        "target": {name: _round_finite(target[n, arm]) for arm, name in enumerate(names)},
    }
    # the first reply of each arm
    replies = {}
    for arm, name in enumerate(names):
        replies[name] = trial.texts.get((n, arm, 0))

    if texts:
        reply_texts = {}
        for name, reply in replies.items():
            if isinstance(reply, AssistantReply):
                reply_texts[name] = reply.text

        row["replies"] = {
            name: shorten_text_to_state_line(text) for name, text in reply_texts.items()
        }

    # what a reader without rubrics preferred, where it was asked
    preferred = {}
    for arm, wins in trial.wins.items():
        if arm < len(names) and not np.isnan(wins[n]):
            preferred[names[arm]] = float(wins[n])

    if preferred:
        row["new preferred"] = preferred

    missing = []
    for name, reply in replies.items():
        if isinstance(reply, NoReply):
            missing.append(f"{name}: {reply.kind}")

    # differences to the old prompt, where both arms have an answer
    changes = []
    for arm, name in enumerate(names):
        if arm != OLD_ARM and np.isfinite(target[n, arm] - target[n, OLD_ARM]):
            changes.append(
                f"{name} {target[n, arm] - target[n, OLD_ARM]:+.2f} against {names[OLD_ARM]}"
            )

    # id and reason come first, as in all states
    return {
        "id": row.pop("id"),
        "why": "; ".join([*missing, *changes]),
        **row,
    }


def _compute_arm_means(target: Floats, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the mean of each arm over the contexts that it was judged in."""
    means = {}
    for arm, name in enumerate(names):
        judged = target[np.isfinite(target[:, arm]), arm]
        if len(judged):
            means[f"target, {name}"] = {"mean": round(float(judged.mean()), 4), "n": len(judged)}

    return means


def _round_finite(value: float) -> float | None:
    if np.isfinite(value):
        return round(float(value), 3)
    return None
