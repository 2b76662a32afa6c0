"""The rows of the tables: how each learns from sheets and predicts Q0 of others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from llm_rubric_data import (
    AnswerMatrix,
    folds_of,
    only_main,
    with_others_answers,
    with_own_answers,
    with_scores_alone,
    without_question,
)

from pollex.calibration.estimator import JudgedEstimator
from pollex.calibration.judgments import Judgments
from pollex.calibration.models import get_model_class
from pollex.calibration.models.ordinal import OrdinalMixedEffects
from pollex.calibration.thumbs import HIDDEN_UNITS_A_LAYER, NETWORK_PENALTY_STRENGTHS_TRIED
from pollex.measures.arrays import Floats, Ints
from pollex.rooms.questionnaire.services.calibrate import MIXED_START_SEEDS

CV, SYSTEMS, REAL, CURVE = "cv", "systems", "real", "curve"
"""Where: cross-validation on synthetic dialogues; leaving one of their systems out; learnt on synthetic ones, measured
on real ones; learning curve."""

Published = tuple[float, float, float, float]
"""RMSE, Pearson, Spearman, Kendall."""

Make = Callable[[int], JudgedEstimator]
"""A seed to an estimator that has not learnt yet."""

View = Callable[[AnswerMatrix], AnswerMatrix]


class RandomAnswers(JudgedEstimator):
    """An answer drawn at random, each as likely."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:
        """Has nothing to learn."""

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:  # noqa: ARG002
        options = len(self.questionnaire_.scales[question].values)
        return np.eye(options)[
            np.random.default_rng((self.seed, len(X))).integers(options, size=len(X))
        ]


@dataclass(frozen=True)
class Method:
    """One row.

    Attributes:
        title: As printed.
        seeded: Whether the seed changes anything.
        synthetic: What the paper publishes of cross-validation on synthetic dialogues.
        real: Of real ones.
        view: What it sees of the sheets.
        systems: Whether what belongs together is the dialogues of one system, and not the sheets of
            one dialogue.
        isotonic: Whether the prediction then goes through isotonic regression per judge, learnt
            from predictions of sheets that the estimator had not seen.
        runs: Seeds at most, of what takes minutes each; None for as many as the others have.
    """

    title: str
    make: Make
    seeded: bool = False
    synthetic: Published | None = None
    real: Published | None = None
    view: View = lambda sheets: sheets
    systems: bool = False
    isotonic: bool = False
    runs: int | None = None

    def fitted(self, train: AnswerMatrix, seed: int) -> JudgedEstimator:
        """The estimator, after it has learnt from what it sees of the sheets."""
        seen = self.view(train)
        groups = seen.system if self.systems else seen.dialogue.tolist()
        return self.make(seed).fit(seen.X, seen.said, questions=seen.questions, groups=groups)

    def predict(self, train: AnswerMatrix, test: AnswerMatrix, seed: int) -> tuple[Floats, str]:
        """Distributions `[sheet, option]` of Q0, and what the estimator says about its choice."""
        model = self.fitted(train, seed)
        proba = self._predicted(model, test)
        if self.isotonic:
            inner = np.zeros((len(train), proba.shape[1]))
            for rows in folds_of(train, seed):
                inner[rows] = self._predicted(
                    self.fitted(train.without(rows), seed), train.part(rows)
                )
            second = Method("", kind("isotonic")).fitted(only_main(train, inner), seed)
            proba = second.predict_proba(proba, test.judges)
        return proba, choice_of(model)

    def _predicted(self, model: JudgedEstimator, test: AnswerMatrix) -> Floats:
        seen = self.view(test)
        return model.predict_proba(seen.X, seen.judges)


class Fixed(JudgedEstimator):
    """Models that are mixed with weights that are given.

    Args:
        members: Names and settings.
        weights: One each.
    """

    def __init__(
        self, members: Sequence[tuple[str, Mapping[str, Any]]], weights: Sequence[float]
    ) -> None:
        self.members = members
        self.weights = weights

    def _learn(self, X: Floats, y: Judgments, groups: Ints) -> None:
        self.members_ = [
            get_model_class(name)(**settings).fit(
                X, y, questions=self.questionnaire_, groups=groups.tolist()
            )
            for name, settings in self.members
        ]

    def _distribution(self, X: Floats, judges: Ints, question: int) -> Floats:
        each = [member._distribution(X, judges, question) for member in self.members_]
        return np.asarray(np.tensordot(self.weights, each, axes=1))


def chosen_once(method: Method, sheets: AnswerMatrix, seed: int) -> Method:
    """The same row with what it chooses on all sheets."""
    choice = method.fitted(sheets, seed).choice_
    members = [
        (choice.trials[place].model, choice.trials[place].settings) for place in choice.weights
    ]
    return replace(method, make=lambda _: Fixed(members, list(choice.weights.values())))


def choice_of(model: JudgedEstimator) -> str:
    """What a model that chooses among others has chosen; empty for others."""
    choice = getattr(model, "choice_", None)
    return "" if choice is None else str(choice.sentence())


def kind(name: str, **settings: Any) -> Make:
    """A model of `calibration/models`; the seed is passed on where it takes one."""

    def make(seed: int) -> JudgedEstimator:
        made = get_model_class(name)
        takes_seed = "seed" in made().get_params()
        return made(**settings | ({"seed": seed} if takes_seed else {}))

    return make


BASELINE = "expected"
NETWORK = "network"
BEGUN = "begun"
ORDINAL = "ordinal"
ORACLE = "oracle"
CHOSEN, CHOSEN_ONCE, CHOSEN_SHIFT = "chosen", "chosen once", "chosen under shift"
"""Keys of rows that others are compared with."""

AUTHORS: dict[str, Any] = {
    "recipe": "authors", "h1": 25, "h2": 25, "batch": 64, "rate": 0.001, "pretraining": 20, "finetuning": 30,
    "seeds": 1, "dropout": 0.0,
}  # fmt: skip
"""What they publish as best in cross-validation on the synthetic dialogues."""

BEGUN_SETTINGS: dict[str, Any] = {
    "start": OrdinalMixedEffects(),
    "h1": HIDDEN_UNITS_A_LAYER,
    "h2": HIDDEN_UNITS_A_LAYER,
    "strengths": NETWORK_PENALTY_STRENGTHS_TRIED,
    "seeds": MIXED_START_SEEDS,
}
"""As `calibrate fit` has it."""

BEGUN_RUNS = 2

PLAIN = {"intercepts": None, "scales": None, "slopes": None}


def predictors() -> dict[str, Method]:
    """Table 1."""
    return {
        "random": Method(
            "random",
            RandomAnswers,
            True,
            (1.499, 0.002, -0.003, -0.003),
            (1.427, 0.011, 0.006, 0.005),
        ),
        "argmax": Method(
            "argmax LLM Q0",
            kind("argmax"),
            False,
            (0.984, 0.153, 0.161, 0.147),
            (1.186, 0.106, 0.123, 0.120),
        ),
        BASELINE: Method(
            "expected LLM Q0",
            kind("as_is"),
            False,
            (0.856, 0.182, 0.217, 0.168),
            (0.901, 0.143, 0.141, 0.138),
        ),
        "alone": Method(
            "calibrated Q0",
            kind("main_alone"),
            False,
            (0.801, 0.198, 0.196, 0.193),
            (0.784, 0.211, 0.218, 0.192),
        ),
        "constant": Method("constant", kind("constant")),
        "judge": Method("judge's mean", kind("judge_mean")),
        "isotonic": Method("isotonic per judge", kind("isotonic")),
        "ridge": Method("ridge with judge", kind("ridge")),
        "authors": Method("network, authors' recipe", kind("network", **AUTHORS), True),
        BEGUN: Method(
            "network of calibrate fit",
            kind("network", **BEGUN_SETTINGS),
            True,
            runs=BEGUN_RUNS,
        ),
        NETWORK: Method(
            "network from nothing",
            kind("network"),
            True,
            (0.396, 0.401, 0.398, 0.393),
            (0.422, 0.350, 0.347, 0.331),
        ),
        "heads": Method("network, ordinal heads", kind("network", heads="ordinal"), True),
        "intercepts": Method(
            "ordinal, judge intercepts", kind("ordinal", scales=None, slopes=None)
        ),
        "scales": Method("ordinal, + scales", kind("ordinal", slopes=None)),
        ORDINAL: Method("ordinal, + scales and slopes", kind("ordinal")),
        "nine scales": Method(
            "ordinal, nine scores, scales", kind("ordinal", slopes=None), view=with_scores_alone
        ),
        "nine slopes": Method("  that, + slopes", kind("ordinal"), view=with_scores_alone),
        CHOSEN: Method("chosen by cross-validation", kind("best"), True),
        CHOSEN_ONCE: Method("  chosen once, on all sheets", kind("best"), True),
        CHOSEN_SHIFT: Method(
            "chosen leaving a system out", kind("best", shift=True), True, systems=True
        ),
    }


def bounds() -> dict[str, Method]:
    """Upper bounds of table 2: what the judge's own answers, or other judges', tell."""
    ordinal = kind("ordinal")
    plain = kind("ordinal", **PLAIN)
    own = with_own_answers
    others = with_others_answers
    published = (0.237, 0.611, 0.626, 0.605), (0.289, 0.717, 0.711, 0.675)
    return {
        ORACLE: Method("oracle: + the judge's own answers", ordinal, False, *published, view=own),
        "oracle bare": Method("oracle without LLM answers", ordinal, view=own_answers_alone),
        "oracle plain": Method("oracle without personalisation", plain, view=own),
        "oracle isotonic": Method(
            "  that, then isotonic per judge", plain, view=own, isotonic=True
        ),
        "others": Method("other judges' answers instead", plain, view=others),
        "others isotonic": Method(
            "  that, then isotonic per judge", plain, view=others, isotonic=True
        ),
    }


def ablations(of: str) -> dict[str, Method]:
    """The rest of table 2, of the network or of the ordinal model: what each part of it is worth."""
    parts: dict[str, dict[str, Any]] = {
        NETWORK: {
            "without fine-tuning": {"finetuning": 0},
            "without pre-training": {"pretraining": 0},
            "without personalisation": {"personal": "none"},
        },
        ORDINAL: {"without personalisation": PLAIN},
    }[of]
    seeded = of == NETWORK
    rows = {
        f"{of}: {name}": Method(name, kind(of, **settings), seeded)
        for name, settings in parts.items()
    }
    for number in range(9):
        name = f"without Q{number}"
        rows[f"{of}: {name}"] = Method(name, kind(of), seeded, view=_without(f"Q{number}"))
    return rows


def everything() -> dict[str, Method]:
    """All rows by key."""
    return predictors() | bounds() | ablations(NETWORK) | ablations(ORDINAL)


def own_answers_alone(sheets: AnswerMatrix) -> AnswerMatrix:
    """The judge's own answers in the place of the LLM's."""
    return with_own_answers(sheets, llm=False)


def _without(name: str) -> View:
    return lambda sheets: without_question(sheets, name)
