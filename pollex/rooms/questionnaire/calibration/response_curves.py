"""Response curves: each judge's expected answer against the LLM's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pollex.calibration.judgments import Judgments
from pollex.measures.arrays import Floats

if TYPE_CHECKING:
    # scikit-learn comes with it, and takes a second to import
    from pollex.calibration.estimator import JudgedEstimator

MESH_POINTS = 25
"""Points of a curve."""


@dataclass(frozen=True)
class ResponseCurve:
    """Expected answer of one judge against the LLM's answer.

    Attributes:
        judge: Name; None for an unknown judge.
        labels: Of the main question; a text that the judge judged again counts once.
        given: Mean of the judgments; None where there is none.
        predicted: Expected answer at each point of the curves' mesh.
    """

    judge: str | None
    labels: int
    given: float | None
    predicted: tuple[float, ...]


def compute_response_curves(
    model: JudgedEstimator,
    X: Floats,
    labels: Judgments,
) -> tuple[tuple[float, ...], tuple[ResponseCurve, ...]]:
    """Return each judge's expected answer against the LLM's, smoothed over texts by a Gaussian kernel.

    The first curve is that of an unknown judge. Source: Nadaraya 1964, doi:10.1137/1109020, for the
    smoothing; Silverman 1986, equation 3.31, for its width.

    Args:
        labels: Judgments of the main question.

    Returns:
        The LLM's expected answers at which the curves are taken, and the curves; none where there
        is nothing to draw them against.
    """
    sheet = model.questionnaire_
    if sheet.main not in sheet.blocks or not sheet.scale().ordinal:
        return (), ()

    # the LLM's expected answers to the main question `[row]`
    llm_answers = sheet.expected(X)[:, [scale.question for scale in sheet.asked].index(sheet.main)]
    there = ~np.isnan(llm_answers)
    if there.sum() < 2 or np.ptp(llm_answers[there]) == 0:
        return (), ()

    # the mesh spans the middle 95 % of them
    low, high = np.quantile(llm_answers[there], [0.025, 0.975]).tolist()
    mesh = np.linspace(low, high, MESH_POINTS)
    # Gaussian weights of the texts at each point `[point, text]`, that sum to 1
    width = 0.9 * llm_answers[there].std() * there.sum() ** -0.2
    logs = -(((mesh[:, None] - llm_answers[there]) / width) ** 2) / 2
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    # predictions `[text, judge]`, of somebody unknown first
    unknown = model.predict(X[there])[:, None]
    judges = [judge for judge in labels.judges if judge in model.judges_]
    if judges:
        predicted = model.predict_each(X[there], judges)
    else:
        predicted = np.zeros((int(there.sum()), 0))

    curves = (weights @ np.concatenate([unknown, predicted], axis=1)).T
    worth = np.array(sheet.scale().values)
    # each curve beside the mean of what its judge said
    names = labels.names()
    theirs = [labels, *(labels.where(names == judge) for judge in judges)]

    judge_curves = []
    for judge, judged, curve in zip([None, *judges], theirs, curves, strict=True):
        judge_curves.append(
            ResponseCurve(
                judge, judged.labels, _average_answers(worth[judged.answer]), tuple(curve.tolist())
            )
        )
    return tuple(mesh.tolist()), tuple(judge_curves)


def _average_answers(answers: Floats) -> float | None:
    if len(answers):
        return float(answers.mean())
    return None
