"""One rubric, learned from a model's answers: a ridge regression of the value, and from that a distribution.

The share of each answer at a predicted value z is a multinomial logistic model of z and z²; "Never came up" is one of
the answers. It is fitted to predictions for conversations that the regression did not see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pollex.errors import BadRubrics

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Features = Mapping[str, float]

FEWEST = 3
"""Conversations that a feature is in at least."""
WORDS = 200
"""Features that a rubric is learned from at most: those that go most with its answers."""
PENALTIES = (30.0, 100.0, 300.0, 1000.0)
INNER = 5


@dataclass(frozen=True)
class Student:
    """What was learned about one rubric.

    Attributes:
        weights: By feature.
        classes: Places of the answers that were ever given; one past the options for "Never came up".
        curve: Of each class, its weights of 1, z and z².
    """

    intercept: float
    weights: dict[str, float]
    classes: list[int]
    curve: list[list[float]]

    def value(self, features: Features) -> float:
        """Predict the value, 0 to 10."""
        found = self.intercept + sum(w * features[name] for name, w in self.weights.items() if name in features)
        return min(10.0, max(0.0, found))

    def probabilities(self, features: Features, options: int) -> Floats:
        """Predict the probability of each option, and of "Never came up" `[option + 1]`."""
        z = self.value(features) / 10
        logits = np.array(self.curve) @ np.array([1.0, z, z * z])
        shares = np.exp(logits - logits.max())
        out = np.zeros(options + 1)
        out[self.classes] = shares / shares.sum()
        return out

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, rubric: str, stored: Any) -> Self:
        """Read what `to_json` gave.

        Raises:
            BadRubrics: It has another form.
        """
        try:
            return cls(
                float(stored["intercept"]),
                {str(name): float(w) for name, w in stored["weights"].items()},
                [int(one) for one in stored["classes"]],
                [[float(w) for w in row] for row in stored["curve"]],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"judge.learned.{rubric} is nothing that was distilled"
            raise BadRubrics(what, remedy="distill it again: `pollex distill`") from error


def learn_student(features: Sequence[Features], values: Floats, picked: Ints) -> Student:
    """Learn one rubric.

    Args:
        values: Of the model's answers, 0 to 10; NaN where the occasion never came up `[conversation]`.
        picked: Place of the answer; one past the options for "Never came up" `[conversation]`.
    """
    came_up = ~np.isnan(values)
    if came_up.sum() < 2 * INNER or np.ptp(values[came_up]) == 0:
        return _constant(values, picked)
    names, x = matrix([one for one, came in zip(features, came_up, strict=True) if came], values[came_up])
    middle, spread = x.mean(axis=0), np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
    scaled, y = (x - middle) / spread, values[came_up]
    inner = np.arange(len(y)) % INNER
    unseen = {penalty: _unseen(scaled, y, inner, penalty) for penalty in PENALTIES}
    best = min(PENALTIES, key=lambda penalty: float(np.square(unseen[penalty] - y).sum()))
    weight, intercept = ridge(scaled, y, best)
    weight = np.array([float(f"{w:.4g}") for w in weight / spread])
    intercept = float(intercept - weight @ middle)
    student = Student(intercept, {n: w for n, w in zip(names, weight.tolist(), strict=True) if w}, [0], [[0.0] * 3])
    z = np.array([student.value(one) for one in features])
    z[came_up] = np.clip(unseen[best], 0, 10)
    classes, curve = _curve(z / 10, picked)
    return Student(student.intercept, student.weights, classes, curve)


def _constant(values: Floats, picked: Ints) -> Student:
    known = values[~np.isnan(values)]
    classes, counts = np.unique(picked, return_counts=True)
    curve = [[float(np.log(n)), 0.0, 0.0] for n in counts]
    return Student(float(known.mean()) if len(known) else 5.0, {}, classes.tolist(), curve)


def matrix(features: Sequence[Features], y: Floats) -> tuple[list[str], Floats]:
    """Return the features that go most with `y`, and their values `[conversation, feature]`."""
    counts: dict[str, int] = {}
    for one in features:
        for name in one:
            counts[name] = counts.get(name, 0) + 1
    names = sorted(name for name, n in counts.items() if n >= FEWEST)
    place = {name: i for i, name in enumerate(names)}
    x = np.zeros((len(features), len(names)))
    for row, one in enumerate(features):
        for name, value in one.items():
            if name in place:
                x[row, place[name]] = value
    centered = x - x.mean(axis=0)
    scale = np.sqrt(np.square(centered).sum(axis=0))
    strength = np.abs((y - y.mean()) @ centered) / np.where(scale > 0, scale, np.inf)
    kept = np.sort(np.argsort(-strength, kind="stable")[:WORDS])
    return [names[i] for i in kept], x[:, kept]


def ridge(x: Floats, y: Floats, penalty: float) -> tuple[Floats, float]:
    """Return weights `[feature]` and intercept of a ridge regression on centered columns, in the dual form."""
    mean, column = y.mean(), x.mean(axis=0)
    centered = x - column
    dual = np.linalg.solve(centered @ centered.T + penalty * np.eye(len(y)), y - mean)
    weight = centered.T @ dual
    return weight, float(mean - column @ weight)


def _unseen(x: Floats, y: Floats, inner: Ints, penalty: float) -> Floats:
    """Predictions `[conversation]` by regressions that did not see the conversation."""
    out = np.empty(len(y))
    for fold in range(INNER):
        weight, intercept = ridge(x[inner != fold], y[inner != fold], penalty)
        out[inner == fold] = x[inner == fold] @ weight + intercept
    return out


def _curve(z: Floats, picked: Ints) -> tuple[list[int], list[list[float]]]:
    """Classes and curve of the multinomial model."""
    from sklearn.linear_model import LogisticRegression  # a second, needed by `distill` alone

    classes = np.unique(picked)
    if len(classes) == 1:
        return classes.tolist(), [[0.0, 0.0, 0.0]]
    fitted = LogisticRegression(C=10, max_iter=1000).fit(np.stack([z, z * z], axis=1), picked)
    rows = [[float(b), *map(float, w)] for b, w in zip(fitted.intercept_, fitted.coef_, strict=True)]
    return classes.tolist(), rows if len(rows) > 1 else [[0.0, 0.0, 0.0], *rows]
