"""What a page about a calibrator is made from, by hand; every text can be replaced."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pollex.conversations.conversation import Turn
from pollex.measures.distributions import (
    PredictionQuality,
    Predictions,
    assess_predictions,
    make_reliability_diagrams,
)
from pollex.measures.intervals import Figure, LabelSupport
from pollex.rooms.questionnaire.calibration.leverage import Leverage
from pollex.rooms.questionnaire.calibration.model_choice import CandidateFigures, ModelChoice
from pollex.rooms.questionnaire.formats.answers import TableIssue
from pollex.rooms.questionnaire.reports.calibration import (
    CalibrationData,
    ComparedModel,
    LearningPoint,
    PredictedScores,
    QuestionGain,
    ResponseCurve,
    TailText,
)

Words = Callable[[str], str]


def plain(text: str) -> str:
    return text


def measured(value: float | None, half: float = 0.1, undefined: str = "") -> Figure:
    if value is None:
        return Figure(None, n=80, undefined=undefined or "all answers are alike", units=40)
    return Figure(value, value - half, value + half, 80, 40)


def predictions(n: int = 80) -> Predictions:
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1.0, 1.0], size=n)
    answer = (rng.random(n) < proba[:, 1]).astype(np.int64)
    return Predictions(proba, answer, np.arange(n) // 2, (1.0, 2.0))


def assessment() -> PredictionQuality:
    """Real figures, but without smECE's intervals, which take long."""
    return assess_predictions(
        predictions(), np.random.default_rng(0), resamples=50, smece_resamples=0
    )


ASSESSED = assessment()
UNDEFINED = replace(
    ASSESSED,
    **{name: measured(None) for name in ("log_loss", "rmse", "pearson", "spearman", "smece")},
    smece_of={1.0: measured(None), 2.0: measured(None)},
)


def material(words: Words = plain, labels: int = 80) -> CalibrationData:
    seen = predictions()
    trials = (
        CandidateFigures(
            words("ordinal"), {words("slopes"): words("none")}, 80, 0.5, 0.02, 0.0, 0.0
        ),
        CandidateFigures(words("ridge"), {}, 80, 0.6, 0.02, 0.1, 0.03),
        CandidateFigures(words("isotonic"), {}, 80, refused=words("no answer to take")),
    )
    lowest = (
        TailText(words("t1"), 1.1, (Turn(role="user", content=words("it fails")),)),
        TailText(words("t2"), 1.2),
    )
    return CalibrationData(
        title=words("calibrator (ordinal)"),
        worker=words("ordinal mixed effects"),
        unlike=words("the folds were others"),
        main=words("overall"),
        values=(1.0, 2.0),
        texts=40,
        labels=labels,
        judges=2,
        folds=5,
        seed=0,
        learned_from=7,
        support=LabelSupport(labels),
        agreement=measured(0.3),
        choice=ModelChoice(words("5 folds"), "best", 0, trials, {0: 0.7, 1: 0.3}),
        compared=(
            ComparedModel(words("calibrator"), ASSESSED),
            ComparedModel("constant", ASSESSED, measured(0.05)),
            ComparedModel(words("network"), ASSESSED, measured(-0.5)),
            ComparedModel(words("isotonic"), None, why_not=words("not asked")),
        ),
        reliabilities=tuple(
            make_reliability_diagrams(seen.proba, seen.answer, seen.text, seen.values)
        ),
        subgroups={words("system"): {words("V1"): ASSESSED}},
        mesh=(1.0, 1.5, 2.0),
        responses=(
            ResponseCurve(None, 80, 1.5, (1.4, 1.5, 1.6)),
            ResponseCurve(words("ann"), 40, 1.2, (1.1, 1.2, 1.3)),
            ResponseCurve(words("bob"), 0, None, (1.6, 1.7, 1.8)),
        ),
        gains=(
            QuestionGain(words("Q1"), measured(0.2)),
            QuestionGain(words("Q2"), measured(0.05)),
            QuestionGain(words("Q3"), measured(-0.2)),
            QuestionGain(words("Q4"), measured(None, undefined=words("nothing to learn"))),
        ),
        learning=(
            LearningPoint(0.5, 32.0, 0.7, 0.02, 5),
            LearningPoint(0.8, 51.0, None, None, 0),
            LearningPoint(1.0, 64.0, 0.6, None, 1),
        ),
        leverages=(
            Leverage(words("Q1"), 0.3, 0.2, 0.4, 0.1, 40),
            Leverage(words("Q2"), undefined=words("its options are not ordered")),
        ),
        faults=(
            TableIssue(
                "probability", words("below 0"), 12, (words("a.csv:3"),), words("mend them")
            ),
            TableIssue("judge", words("with one label only"), 1, (words("dee"),), left_out=False),
        ),
        predicted=tuple(
            PredictedScores(
                words("overall"),
                *subset,
                measured(1.5),
                (1.0, 1.5, 2.0),
                (0.4, 1.0, 0.6),
                *bands,
                lowest,
            )
            for subset, bands in [
                (("", ""), ((0.2, 0.8, 0.3), (0.6, 1.2, 0.9))),
                ((words("system"), words("V1")), ((), ())),
            ]
        ),
        facts={"answers": words("answers.csv")},
    )
