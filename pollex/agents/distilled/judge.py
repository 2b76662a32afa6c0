"""The distilled judge, and the judge without a model that leaves each rubric to whom it belongs.

One rubric, learned from a model's answers: a ridge regression of the value, and from that a
distribution.

The share of each answer at a predicted value z is a multinomial logistic model of z and z²; "Never
came up" is one of the answers. It is fitted to predictions for conversations that the regression
did not see.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import log1p
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.events.reading import ANY_TOPIC
from pollex.agents.embedded.events.topics import LogTopics
from pollex.agents.embedded.judge import SCALE_FOLDS, EmbeddedJudge, assign_stratified_folds
from pollex.agents.embedded.signals import MEASURE_NAMES, SIGNALS_BY_NAME, summarize_marks_of_party
from pollex.agents.embedded.view import ConversationView
from pollex.agents.mixed import DividingJudge
from pollex.agents.roles import Judge, make_unanswered_for_all
from pollex.conversations.conversation import Conversation, Label
from pollex.errors import BadRubrics
from pollex.rubrics.answers import Answer, Question, Unanswered
from pollex.rubrics.rubric import ANSWERED_BY_DISTILLED_JUDGE, Rubric, make_content_id

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
FeatureValues = Mapping[str, float]

MIN_CONVERSATIONS_PER_FEATURE = 3
"""Conversations that a feature is in at least."""
MAX_FEATURES_PER_RUBRIC = 200
"""Features that a rubric is learned from at most: those that go most with its answers."""
# penalties that are tried, and the folds by which the best one is found
RIDGE_PENALTIES = (30.0, 100.0, 300.0, 1000.0)
RIDGE_PENALTY_FOLDS = 5


@dataclass(frozen=True)
class RubricStudent:
    """What was learned about one rubric.

    Attributes:
        weights: By feature.
        classes: Places of the answers that were ever given; one past the options for "Never came
            up".
        curve: Of each class, its weights of 1, z and z².
    """

    intercept: float
    weights: dict[str, float]
    classes: list[int]
    curve: list[list[float]]

    def value(self, features: FeatureValues) -> float:
        """Predict the value, 0 to 10."""
        value = self.intercept + sum(
            w * features[name] for name, w in self.weights.items() if name in features
        )
        return min(10.0, max(0.0, value))

    def probabilities(self, features: FeatureValues, options: int) -> Floats:
        """Predict the probability of each option, and of "Never came up" `[option + 1]`."""
        # z from 0 to 1; the largest logit is taken off, so that exp can't overflow
        z = self.value(features) / 10
        logits = np.array(self.curve) @ np.array([1.0, z, z * z])
        shares = np.exp(logits - logits.max())
        # options that the model never chose keep probability 0
        out = np.zeros(options + 1)
        out[self.classes] = shares / shares.sum()

        return out

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, rubric: str, stored: Any) -> Self:
        """Read what `to_json` gave.

        Raises:
            BadRubrics: It has another form.
        """
        try:
            curve = []
            for row in stored["curve"]:
                curve.append([float(w) for w in row])

            return cls(
                float(stored["intercept"]),
                {str(name): float(w) for name, w in stored["weights"].items()},
                [int(place) for place in stored["classes"]],
                curve,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"judge.learned.{rubric} is nothing that was distilled"
            raise BadRubrics(what, hint="distill it again: `pollex distill`") from error


def fit_student_of_rubric(
    features: Sequence[FeatureValues],
    values: Floats,
    picked: Ints,
) -> RubricStudent:
    """Learn one rubric.

    Args:
        values: Of the model's answers, 0 to 10; NaN where the occasion never came up
            `[conversation]`.
        picked: Place of the answer; one past the options for "Never came up" `[conversation]`.
    """
    came_up = ~np.isnan(values)
    # too few values, or no difference between them: nothing to regress on
    if came_up.sum() < 2 * RIDGE_PENALTY_FOLDS or np.ptp(values[came_up]) == 0:
        return _make_constant_student(values, picked)

    rows_with_occasion = []
    for row, came in zip(features, came_up, strict=True):
        if came:
            rows_with_occasion.append(row)

    names, x = build_feature_matrix(
        rows_with_occasion,
        values[came_up],
    )
    # columns are standardized `[conversation, feature]`, so that one penalty fits all
    middle = x.mean(axis=0)
    spread = np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
    scaled = (x - middle) / spread
    y = values[came_up]
    # the penalty whose predictions of conversations left out are nearest
    inner = np.arange(len(y)) % RIDGE_PENALTY_FOLDS
    unseen = {
        penalty: _predict_out_of_fold(scaled, y, inner, penalty) for penalty in RIDGE_PENALTIES
    }
    best = min(
        RIDGE_PENALTIES,
        key=lambda penalty: float(np.square(unseen[penalty] - y).sum()),
    )
    weight, intercept = fit_ridge_regression(scaled, y, best)
    # back to the features' own units; four digits are enough
    weight = np.array([float(f"{w:.4g}") for w in weight / spread])
    intercept = float(intercept - weight @ middle)
    # its curve is a stand-in: this student predicts values only
    weights = {}
    for n, w in zip(names, weight.tolist(), strict=True):
        if w:
            weights[n] = w

    student = RubricStudent(
        intercept,
        weights,
        [0],
        [[0.0] * 3],
    )
    # answers are learned from predictions that did not see the conversation, as new ones are
    z = np.array([student.value(row) for row in features])
    z[came_up] = np.clip(unseen[best], 0, 10)
    classes, curve = _fit_option_probability_curve(z / 10, picked)

    return RubricStudent(student.intercept, student.weights, classes, curve)


def _make_constant_student(values: Floats, picked: Ints) -> RubricStudent:
    present = values[~np.isnan(values)]
    classes, counts = np.unique(picked, return_counts=True)
    # one logit for each answer by its count, the same at any value
    curve = [[float(np.log(n)), 0.0, 0.0] for n in counts]

    return RubricStudent(
        float(present.mean()) if len(present) else 5.0,
        {},
        classes.tolist(),
        curve,
    )


def build_feature_matrix(features: Sequence[FeatureValues], y: Floats) -> tuple[list[str], Floats]:
    """Return the features that go most with `y`, and their values `[conversation, feature]`."""
    # in how many conversations each feature is
    counts: dict[str, int] = {}
    for row_features in features:
        for name in row_features:
            counts[name] = counts.get(name, 0) + 1

    # only features that enough conversations have
    names = sorted(name for name, n in counts.items() if n >= MIN_CONVERSATIONS_PER_FEATURE)
    place = {name: i for i, name in enumerate(names)}
    x = np.zeros((len(features), len(names)))
    for row, row_features in enumerate(features):
        for name, value in row_features.items():
            if name in place:
                x[row, place[name]] = value

    # by correlation with `y`: a feature that never varies has none
    centered = x - x.mean(axis=0)
    scale = np.sqrt(np.square(centered).sum(axis=0))
    strength = np.abs((y - y.mean()) @ centered) / np.where(scale > 0, scale, np.inf)
    # the strongest features, back in the order of their names
    strongest = np.sort(np.argsort(-strength, kind="stable")[:MAX_FEATURES_PER_RUBRIC])
    return [names[i] for i in strongest], x[:, strongest]


def fit_ridge_regression(x: Floats, y: Floats, penalty: float) -> tuple[Floats, float]:
    """Return weights `[feature]` and intercept of a ridge regression on centered columns, in the dual form."""
    mean = y.mean()
    column = x.mean(axis=0)
    centered = x - column
    # one unknown for each conversation, from which the features' weights follow
    dual = np.linalg.solve(centered @ centered.T + penalty * np.eye(len(y)), y - mean)
    weight = centered.T @ dual

    return weight, float(mean - column @ weight)


def _predict_out_of_fold(
    x: Floats,
    y: Floats,
    inner: Ints,
    penalty: float,
) -> Floats:
    """Predictions `[conversation]` by regressions that did not see the conversation."""
    out = np.empty(len(y))
    for fold in range(RIDGE_PENALTY_FOLDS):
        weight, intercept = fit_ridge_regression(x[inner != fold], y[inner != fold], penalty)
        out[inner == fold] = x[inner == fold] @ weight + intercept
    return out


def _fit_option_probability_curve(z: Floats, picked: Ints) -> tuple[list[int], list[list[float]]]:
    from sklearn.linear_model import LogisticRegression  # a second, needed by `distill` alone

    classes = np.unique(picked)
    if len(classes) == 1:
        return classes.tolist(), [[0.0, 0.0, 0.0]]

    fitted = LogisticRegression(C=10, max_iter=1000).fit(
        np.stack([z, z * z], axis=1),
        picked,
    )
    rows = []
    for b, w in zip(fitted.intercept_, fitted.coef_, strict=True):
        rows.append([float(b), *map(float, w)])

    # two classes get a single row of weights: those of the first are 0
    return classes.tolist(), rows if len(rows) > 1 else [[0.0, 0.0, 0.0], *rows]


WORD_PATTERN_SIGNALS = {
    name: signal for name, signal in SIGNALS_BY_NAME.items() if signal.pattern is not None
}
"""Signals that are found by their words: the others compare vectors or lengths."""

NO_TOPICS = LogTopics(())
_WORD_REGEX = re.compile(r"[^\W_]{2,}")


def compute_conversation_features(
    conversation: Conversation, embedder: Embedder
) -> dict[str, float]:
    """Compute the features that are not 0, by name: `w:PARTY:WORD`, `s:SIGNAL:MEASURE`, `e:EVENT` and `n:PARTY`."""
    view = ConversationView(conversation, embedder)
    features = dict[str, float]()
    # words and pairs of neighboring words of each party, and how many words it has
    for turn in conversation.turns:
        party = turn.role[:1]
        words = _WORD_REGEX.findall(turn.content.casefold())
        features[f"n:{party}"] = features.get(f"n:{party}", 0.0) + len(words)
        features |= {f"w:{party}:{word}": 1.0 for word in words}
        features |= {f"w:{party}:{first} {second}": 1.0 for first, second in pairwise(words)}

    # numbers of words count on a log scale
    features |= {name: log1p(count) for name, count in features.items() if name.startswith("n:")}
    # signals as the built-in judge measures them
    for name, signal in WORD_PATTERN_SIGNALS.items():
        values = summarize_marks_of_party(signal.marks(view), view.of(signal.party))
        for measure, v in zip(MEASURE_NAMES, values, strict=True):
            if v:
                features[f"s:{name}:{measure}"] = float(v)

    # events of any topic, by how sure they are
    reading = view.reading("{}", NO_TOPICS)
    for event in reading.firings:
        if event.topic == ANY_TOPIC:
            features[f"e:{event.pattern}"] = reading.sure(event)
    return features


DISTILLED_JUDGE_VERSION = "1"
DISTILLED_JUDGE_NAME = "distilled"


@dataclass(frozen=True)
class TeacherAnswer:
    """What a model answered, by text hash and rubric.

    Attributes:
        value: 0 to 10; None where the occasion never came up.
        picked: Place of the answer; one past the options for "Never came up".
    """

    value: float | None
    picked: int


TeacherAnswersByRubric = Mapping[str, Mapping[str, TeacherAnswer]]
"""By rubric and text hash."""


class DistilledJudge(Judge):
    """Answers a model's rubrics from words, signals and events, as it learned from the model's answers.

    A conversation that it learned from is answered by what was learned without it (five folds).

    Args:
        learned: What an earlier judge's `learned` gave.
        lessons: What `fit` learns from.

    Raises:
        BadRubrics: What was learned has another form.
    """

    def __init__(
        self,
        embedder: Embedder,
        learned: Mapping[str, object] | None = None,
        lessons: TeacherAnswersByRubric | None = None,
    ) -> None:
        self.embedder = embedder
        students = {}
        for id_, stored in (learned or {}).items():
            students[id_] = RubricStudent.from_json(id_, stored)

        self.students = students
        self.lessons = lessons or {}
        self._fold_students: list[dict[str, RubricStudent]] = []
        self._folds: dict[str, int] = {}

    @property
    def name(self) -> str:
        return DISTILLED_JUDGE_NAME

    @property
    def fingerprint(self) -> str:
        return make_content_id(
            DISTILLED_JUDGE_NAME,
            DISTILLED_JUDGE_VERSION,
            json.dumps(self.learned, sort_keys=True),
            str(sorted(self.lessons)),
        )

    @property
    def learned(self) -> Mapping[str, object]:
        return {id_: student.to_json() for id_, student in sorted(self.students.items())}

    async def fit(self, training: Sequence[Conversation], rubrics: Sequence[Rubric]) -> None:
        """Learn each rubric from what the model answered about training conversations, and again without each fold."""
        if not self.lessons:
            return

        # sums depend on their order, in the last digit
        scorable = []
        for c in training:
            if not c.not_scorable:
                scorable.append(c)

        ordered = sorted(
            scorable,
            key=lambda c: (c.text_hash, c.id),
        )
        features = []
        for conversation in ordered:
            features.append(compute_conversation_features(conversation, self.embedder))

        hashes = [conversation.text_hash for conversation in ordered]
        # the built-in judge's folds: by class, and copies of a text together
        folds = assign_stratified_folds(
            hashes,
            np.array([c.label is Label.POSITIVE for c in ordered], dtype=bool),
        )
        self._folds = dict(zip(hashes, folds.tolist(), strict=True))
        self.students = self._learned(rubrics, features, hashes)
        fold_students = []
        for fold in range(SCALE_FOLDS):
            fold_students.append(
                self._learned(
                    rubrics,
                    [row for row, its in zip(features, folds, strict=True) if its != fold],
                    [
                        text_hash
                        for text_hash, its in zip(hashes, folds, strict=True)
                        if its != fold
                    ],
                )
            )

        self._fold_students = fold_students

    def _learned(
        self,
        rubrics: Sequence[Rubric],
        features: Sequence[FeatureValues],
        hashes: Sequence[str],
    ) -> dict[str, RubricStudent]:
        students = {}
        for rubric in rubrics:
            lessons = self.lessons.get(rubric.id, {})
            # only conversations that the model answered about teach the rubric
            rows = []
            for row, text in zip(features, hashes, strict=True):
                if text in lessons:
                    rows.append((row, lessons[text]))

            if rows:
                values = np.array(
                    [np.nan if taught.value is None else taught.value for _, taught in rows]
                )
                picked = np.array(
                    [taught.picked for _, taught in rows],
                    dtype=np.intp,
                )
                students[rubric.id] = fit_student_of_rubric(
                    [row for row, _ in rows],
                    values,
                    picked,
                )

        return students

    def foretold(self, conversation: Conversation) -> dict[str, float]:
        """Predict the value of each rubric, by what was learned without the conversation."""
        features = compute_conversation_features(conversation, self.embedder)
        fold = self._folds.get(conversation.text_hash)
        students = self.students if fold is None else self._fold_students[fold]
        values: dict[str, float] = {}
        for id_, student in students.items():
            values[id_] = student.value(features)

        return values

    async def judge(
        self, conversation: Conversation, questions: Sequence[Question]
    ) -> list[Answer | Unanswered]:
        """Answer each question by what was learned about its rubric."""
        if why := conversation.not_scorable:
            return make_unanswered_for_all(questions, "not_scorable", why, DISTILLED_JUDGE_NAME)

        # what was learned without its own fold answers a conversation of the lessons
        fold = self._folds.get(conversation.text_hash)
        students = self.students if fold is None else self._fold_students[fold]
        features = compute_conversation_features(conversation, self.embedder)
        answers: list[Answer | Unanswered] = []
        for question in questions:
            answers.append(
                self._answer(
                    question,
                    students.get(question.id),
                    features,
                )
            )

        return answers

    def _answer(
        self,
        question: Question,
        student: RubricStudent | None,
        features: FeatureValues,
    ) -> Answer | Unanswered:
        if student is None:
            detail = "Untaught: the model's answers to this rubric were never learned from"
            return Unanswered(
                question_id=question.id,
                outcome="error",
                detail=detail,
                judge=DISTILLED_JUDGE_NAME,
            )

        options = len(question.options)
        shares = student.probabilities(features, options)
        # “Never came up” needs a question that allows it; else the options share its mass
        never = int(np.argmax(shares)) == options and question.may_never
        if never:
            p = np.zeros(options)
        else:
            p = shares[:options] / max(shares[:options].sum(), 1e-12)

        # the features that move the value most in this conversation
        heaviest = sorted(
            student.weights, key=lambda name: -abs(student.weights[name] * features.get(name, 0.0))
        )[:3]
        return Answer(
            question_id=question.id,
            probabilities=tuple(p.tolist()),
            chosen=options if never else int(np.argmax(p)),
            source="built-in",
            justification=f"value {student.value(features):.1f} by {', '.join(heaviest) or 'the mean'}",
            judge=DISTILLED_JUDGE_NAME,
        )


class JudgeWithoutModel(DividingJudge):
    """Has each rubric answered without a model: distilled ones by what was learned, others by the built-in judge."""

    def __init__(
        self,
        embedder: Embedder,
        learned: Mapping[str, Any],
        lessons: TeacherAnswersByRubric | None = None,
    ) -> None:
        # a student is stored with `weights`, a scale of the built-in judge with `weight`
        scales = {}
        for id_, stored in learned.items():
            if "weights" not in stored:
                scales[id_] = stored

        taught = {}
        for id_, stored in learned.items():
            if "weights" in stored:
                taught[id_] = stored

        super().__init__(
            DistilledJudge(embedder, taught, lessons),
            EmbeddedJudge(embedder, scales),
        )
        self.distils = bool(taught or lessons)

    @property
    def name(self) -> str:
        return DISTILLED_JUDGE_NAME if self.distils else self.built_in.name

    @property
    def fingerprint(self) -> str:
        return make_content_id(
            "local",
            self.built_in.fingerprint,
            self.model.fingerprint,
        )

    def _is_models(self, rubric: Rubric | None) -> bool:
        return rubric is not None and rubric.answered_by == ANSWERED_BY_DISTILLED_JUDGE
