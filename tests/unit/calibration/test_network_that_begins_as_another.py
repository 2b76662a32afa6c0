"""A network that begins as another model, and is shrunk to it."""

import numpy as np
import pytest
import torch

from pollex.calibration.judgments import convert_judgments_to_arrays
from pollex.calibration.models.network import CalibrationNetwork
from pollex.calibration.models.weighted_sum import WeightedSum
from pollex.calibration.network import begun
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.calibration.storage import deserialize_calibrator, serialize_calibrator
from pollex.errors import BadCalibrator
from pollex.measures.arrays import Floats

LIKERT = (0.0, 2.5, 5.0, 7.5, 10.0)
ASKED = (Scale("a", LIKERT), Scale("b", LIKERT), Scale("c", LIKERT))
STARS = Questionnaire(
    (*ASKED, Scale("stars", (1.0, 2.0, 3.0), asked=False), Scale("kind", (0.0, 1.0), asked=False)),
    "stars",
)
THUMB = Questionnaire((*ASKED, Scale("thumb", (0.0, 1.0), asked=False)), "thumb")


def rows(n: int) -> Floats:
    """Answers `[row, question × option]`; some are missing, and some never came up."""
    found = np.random.default_rng(0).dirichlet(np.full(5, 0.5), (n, 3))
    found[0, 1], found[1, 2] = np.nan, 0
    return found.reshape(n, -1)


def made(**settings: object) -> CalibrationNetwork:
    return CalibrationNetwork(
        **{"h1": 4, "h2": 4, "seeds": 2, "start": WeightedSum((1.0, 1.0, -1.0))} | settings
    )


def rated(n: int = 60) -> tuple[Floats, list[tuple[int, str, str | None, float]]]:
    """Stars by two raters, one of them strict, and whether they found it kind."""
    X = rows(n)
    level = np.nan_to_num(X.reshape(n, 3, 5) @ np.array(LIKERT))
    stars = np.clip(np.round(2 + (level[:, 0] - level[:, 2]) / 6 - (np.arange(n) % 2)), 1, 3)
    given = [
        (row, "stars", ("mild", "strict")[row % 2], float(value)) for row, value in enumerate(stars)
    ]
    return X, given + [(row, "kind", None, float(level[row, 1] > 5)) for row in range(0, n, 3)]


def test_what_labels_add_is_nothing_where_the_shrinkage_is_endless() -> None:
    X = rows(40)
    up = (np.nan_to_num(X[:, 4]) > 0.2).astype(float)
    own = made(strengths=(1e9,)).fit(X, up, questions=THUMB)
    start = WeightedSum((1.0, 1.0, -1.0)).fit(X, up, questions=THUMB)
    assert own.predict_proba(X) == pytest.approx(start.predict_proba(X), abs=1e-3)


def test_numpy_predicts_what_torch_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    stacks: list[begun._NetworkStack] = []
    monkeypatch.setattr(
        begun._NetworkStack, "losses", lambda stack: stacks.append(stack) or np.zeros((1, 1))
    )
    X, given = rated()
    model = made(strengths=(5.0,)).fit(X, given, questions=STARS)
    (stack,) = stacks
    sheets = stack.lesson.sheets
    logs = model._fit_starts(
        X,
        convert_judgments_to_arrays(given, None, STARS, 60).coded(model.judges_),
        np.zeros(0, np.int64),
        sheets,
    )[1]
    stack.begins = torch.tensor(logs, dtype=torch.float32)[None].expand(stack.count, *logs.shape)
    with torch.no_grad():
        by_torch = torch.softmax(stack.logits(0), -1).mean(0).double().numpy()
    names = np.array([*model.judges_, None], dtype=object)[sheets.judge].tolist()
    assert np.abs(model.predict_proba(X[sheets.row], names) - by_torch).max() < 1e-6


def test_raters_and_several_questions_are_learned_and_kept() -> None:
    X, given = rated()
    model = made(seeds=5).fit(X, given, questions=STARS)
    mild, strict, stranger = (
        model.predict(X, [who] * 60).mean() for who in ("mild", "strict", "new")
    )
    assert strict < stranger < mild
    pack = serialize_calibrator(model)
    again = deserialize_calibrator(pack.facts, pack.arrays)
    for question in ("stars", "kind"):
        assert np.array_equal(
            again.predict_proba(X, question=question), model.predict_proba(X, question=question)
        )
    scales = pack.facts["questionnaire"]["scales"]
    wider = [
        *scales[:3],
        {"question": "d", "values": LIKERT, "ordinal": True, "asked": True},
        *scales[3:],
    ]
    with pytest.raises(BadCalibrator, match="its facts and arrays don't fit each other"):
        deserialize_calibrator(
            pack.facts | {"questionnaire": {"main": "stars", "scales": wider}}, pack.arrays
        )


@pytest.mark.filterwarnings("ignore::pollex.calibration.estimator.ConstantLabelsWarning")
def test_odd_labels_and_answers_give_probabilities() -> None:
    """Constant answers, one class, a grade that occurs once, and a rater with two labels."""
    X, given = rated(30)
    stars = given[:30]
    cases = (
        (np.tile(np.full(5, 0.2), (30, 3)), stars),
        (X, [(row, question, who, 2.0) for row, question, who, _ in stars]),
        (
            X,
            [
                (row, question, who, 3.0 if row == 4 else min(value, 2.0))
                for row, question, who, value in stars
            ],
        ),
        (
            X,
            [
                (row, question, "rare" if row < 2 else who, value)
                for row, question, who, value in stars
            ],
        ),
    )
    for answers, labels in cases:
        model = made(strengths=(5.0, 20.0)).fit(answers, labels, questions=STARS)
        proba = model.predict_proba(answers, ["rare"] * 30)
        assert proba.sum(axis=1) == pytest.approx(1), labels


def test_what_harms_only_together_is_found_with_labels_enough() -> None:
    rng = np.random.default_rng(0)
    holds = rng.random((900, 3)) < 0.4
    X = np.eye(5)[np.where(holds, 4, 0)].reshape(900, -1)
    up = rng.random(900) < np.where(holds[:, 0] & holds[:, 1], 0.1, 0.9)
    losses = []
    for model in (WeightedSum((-1.0,) * 3), made(start=WeightedSum((-1.0,) * 3))):
        proba = model.fit(X[:600], up[:600].astype(float), questions=THUMB).predict_proba(X[600:])
        losses.append(-np.log(proba[np.arange(300), up[600:].astype(int)]).mean())
    assert losses[1] < losses[0] - 0.05
