"""A small rubric set made by hand, whose every text can be replaced."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pollex.calibration.thumbs import fit_calibration_model
from pollex.measures.classification import Assessment
from pollex.measures.intervals import Figure
from pollex.prompts.domain import DomainProfile
from pollex.reports.learning import SkippedItem, render_learning_page
from pollex.rubrics.answers import LIKERT_OPTIONS, Answer
from pollex.rubrics.learning.results import LabelledScore
from pollex.rubrics.records import (
    Baseline,
    Choice,
    ChosenRubric,
    DataRecord,
    DroppedRubric,
    JudgeRecord,
)
from pollex.rubrics.rubric import Quote, Reason
from pollex.rubrics.rubric_set import RubricSet, hash_rubrics
from pollex.rubrics.score import ThumbModel
from pollex.selection.losses import AlphaScore
from pollex.selection.threshold import Calibration, Window

Words = Callable[[str], str]

UNKNOWN = Figure(value=None, n=0, undefined="only positive conversations")


def plain(text: str) -> str:
    return text


def figure(value: float, half: float = 0.1, n: int = 20) -> Figure:
    return Figure(value=value, low=value - half, high=value + half, n=n)


def figures(auc: Figure, n: int = 20, **others: Figure) -> Assessment:
    half = figure(0.6)
    known: dict[str, Any] = {
        name: half
        for name in Assessment.__dataclass_fields__
        if name not in ("n", "positives", "negatives")
    }
    return Assessment(
        n=n, positives=n // 2, negatives=n - n // 2, **(known | {"auc": auc} | others)
    )


def unknown_figures(n: int = 20) -> Assessment:
    names = [
        name
        for name in Assessment.__dataclass_fields__
        if name not in ("n", "positives", "negatives")
    ]
    return Assessment(n=n, positives=n, negatives=0, **dict.fromkeys(names, UNKNOWN))


def rubric(
    number: int, polarity: str, words: Words = plain, stability: float | None = 0.64
) -> ChosenRubric:
    quote = Quote(
        conversation_id=words(f"conversation {number}"), turn=3, text=words("it works now, thanks")
    )
    return ChosenRubric(
        id=f"rubric{number}",
        text=words(f"The user says thanks {number}."),
        polarity=polarity,  # type: ignore[arg-type]
        reason_ids=(f"reason{number}",),
        quotes=(quote,),
        source="signal:thanks",
        tells="manners",
        choice=Choice(
            step=number, loss=-0.125, correctness=1.0, sharpness=0.1, stability=stability
        ),
    )


def rubric_set(words: Words = plain, **changes: Any) -> RubricSet:
    rubrics = changes.pop("rubrics", (rubric(1, "sat", words), rubric(2, "dsat", words)))
    profile = DomainProfile.neutral().model_copy(
        update={"assistant": words("a bicycle repair assistant")}
    )
    whole: dict[str, Any] = {
        "pollex": "0.1.0",
        "created": "2026-01-02T03:04:05+00:00",
        "run": "learn-1",
        "roles": {"extractor": "built-in (no LLM)", "judge": "built-in (no LLM)"},
        "prompts": {words("extract_sat"): words("abc")},
        "domain": profile,
        "rubrics": rubrics,
        "theta": 0.5,
        "window": Window(lower=-2.0, upper=3.0, precision=0.9),
        "calibration": Calibration(slope=0.3, intercept=0.0),
        "alpha": 0.3,
        "alphas": (
            AlphaScore(alpha=0.0, mean_auc=0.7, deviation=None, folds=1),
            AlphaScore(alpha=0.3, mean_auc=0.8, deviation=0.1, folds=5),
        ),
        "judge": JudgeRecord(kind="embedded", name="built-in (no LLM)", fingerprint=words("f00")),
        "data": DataRecord(
            fingerprint=words("d00"),
            conversations=41,
            positives=20,
            negatives=20,
            unlabeled=1,
            not_scorable=0,
            training=20,
            held_out=20,
            test_fraction=0.5,
            seed=0,
        ),
        "training": figures(figure(0.9)),
        "held_out": figures(figure(0.7)),
        "baselines": (
            Baseline(
                name=words("TF-IDF"), held_out=figures(figure(0.6)), advantage=figure(0.1, 0.2)
            ),
        ),
        "notes": (words("a note"),),
        "dropped": (
            DroppedRubric(
                id="lost1",
                text=words("The user waits."),
                polarity="dsat",
                support=2,
                reason=words("another was better"),
                loss=-0.1,
                stability=0.2,
            ),
            DroppedRubric(
                id="lost2",
                text=words("The user sighs."),
                polarity="dsat",
                support=1,
                reason="",
                duplicate_of="x",
            ),
        ),
        "reasons": (
            Reason(
                id="reason1",
                conversation_id=words("conversation 1"),
                polarity="sat",
                text=words("so"),
                quotes=(),
            ),
        ),
        "rubrics_digest": hash_rubrics(rubrics),
    }
    return RubricSet(**(whole | changes))


def scores(words: Words = plain, n: int = 20, seed: int = 0) -> list[LabelledScore]:
    rng = np.random.default_rng(seed)
    return [
        LabelledScore(
            words(f"{side}{i}"), side, i % 2 == 0, float(rng.normal(3 if i % 2 == 0 else -2, 3))
        )
        for side in ("training", "held_out")
        for i in range(n)
    ]


def page(words: Words = plain, **changes: Any) -> str:
    """The report with every text passed through `words`."""
    unscored = LabelledScore(words("conversation 9"), "held_out", True, None, words("refused"))
    rubrics = rubric_set(words, **changes)
    return render_learning_page(
        rubrics,
        [*scores(words), unscored],
        [SkippedItem(words("log.jsonl:7"), words("no messages"), words("give it messages"))],
        means={rubric.id: (6.5, 4.25) for rubric in rubrics.rubrics},
        path=words("rubrics.json"),
    )


def point_answer(rubric_id: str, chosen: int, turns: tuple[int, ...] = ()) -> Answer:
    """An answer of one option for sure; the one past the last says that it never came up."""
    return Answer(
        question_id=rubric_id,
        probabilities=tuple(float(option == chosen) for option in range(len(LIKERT_OPTIONS))),
        chosen=chosen,
        source="built-in",
        turns=turns,
        judge="built-in",
    )


def model_that_goes_by_the_second_rubric() -> ThumbModel:
    """A model of the probability, fitted to thumbs that are up where rubric2 holds, of whatever side it is."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(LIKERT_OPTIONS), (200, 2))
    answers = np.eye(len(LIKERT_OPTIONS))[chosen]
    ids = ("rubric1", "rubric2")
    model = fit_calibration_model(
        "ordinal mixed effects", answers, (1.0, -1.0), chosen[:, 1] > 1, rubrics=ids
    )
    return ThumbModel(ids, model)
