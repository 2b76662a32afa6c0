"""What a regression sees: columns that differ by rounding alone don't count, and no text is infinitely far away."""

import numpy as np
import pytest

from pollex.calibration.features import FARTHEST, inputs_of
from pollex.calibration.models import model_named
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.measures.arrays import Floats

QUESTIONS = Questionnaire((Scale("overall", (1.0, 2.0, 3.0)), Scale("clear", (0.0, 100.0))), "overall")


def rounded(digits: int, mass: float = 0.95, rows: int = 60) -> Floats:
    """Probabilities as a table has them."""
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet([1, 1, 1], rows), rng.dirichlet([1, 1], rows)
    return np.round(mass * np.concatenate([first, second], axis=1), digits)


def test_masses_that_differ_by_rounding_alone_are_no_input() -> None:
    assert inputs_of(rounded(16), QUESTIONS).names() == ("overall", "clear")
    assert inputs_of(rounded(4), QUESTIONS).names() == ("overall", "clear")


def test_masses_that_differ_are_inputs() -> None:
    X = rounded(16)
    X[::2] *= 0.9
    assert inputs_of(X, QUESTIONS).names() == ("overall", "clear", "overall", "clear")


def test_a_score_that_varies_by_under_a_thousandth_of_its_scale_is_no_input() -> None:
    rows = np.random.default_rng(1).uniform(size=(60, 1))
    X = np.concatenate([rounded(16)[:, :3], 0.5 + 1e-3 * rows, 0.5 - 1e-3 * rows], axis=1)
    assert inputs_of(X, QUESTIONS).names() == ("overall",)  # 100 · 1e-3 · 0.29 is under 0.1
    X = np.concatenate([rounded(16)[:, :3], 0.5 + 1e-2 * rows, 0.5 - 1e-2 * rows], axis=1)
    assert inputs_of(X, QUESTIONS).names() == ("overall", "clear")


def test_a_text_is_no_further_from_the_mean_than_the_limit() -> None:
    near = np.random.default_rng(2).uniform(0.495, 0.505, size=60)
    X = np.concatenate([rounded(16)[:, :3], near[:, None], 1 - near[:, None]], axis=1)
    far = np.array([[0.2, 0.3, 0.4, 0.0, 1.0], [0.2, 0.3, 0.4, 1.0, 0.0]])
    assert inputs_of(X, QUESTIONS).of(far).rows[:, 1].tolist() == [FARTHEST, -FARTHEST]


@pytest.mark.parametrize("name", ["ordinal", "ridge"])
def test_predictions_of_rounded_tables_don_t_hang_on_the_mass(name: str) -> None:
    X = rounded(5)
    y = np.array([1.0, 2.0, 3.0])[np.random.default_rng(3).integers(3, size=60)]
    model = model_named(name)().fit(X, y, questions=QUESTIONS)
    np.testing.assert_allclose(model.predict(X * 0.9), model.predict(X), atol=1e-9)
