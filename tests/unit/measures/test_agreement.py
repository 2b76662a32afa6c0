import krippendorff
import numpy as np
import pytest

from pollex.measures.correlations import MeasurementLevel, _make_krippendorff_alpha_statistic
from pollex.measures.correlations import estimate_krippendorff_alpha as alpha_of
from pollex.measures.intervals import Figure

VALUES = np.array([1.0, 2.0, 4.0, 8.0])
LEVELS: tuple[MeasurementLevel, ...] = ("nominal", "ordinal", "interval")


def alpha(
    judged: list[tuple[int, int, int]],
    level: MeasurementLevel = "ordinal",
    rng: np.random.Generator | None = None,
) -> Figure:
    """Of (text, judge, place of the answer)."""
    row, judge, answer = np.array(judged, dtype=np.int64).reshape(-1, 3).T
    return alpha_of(row, judge, answer, VALUES, level, rng, 300)


def test_without_two_judges_of_a_text_there_is_no_agreement() -> None:
    found = alpha([(0, 0, 1), (1, 1, 2), (2, 0, 3)])
    assert found == Figure(None, n=0, undefined="no text has two judges", units=0)
    assert alpha([]).undefined == "no text has two judges"
    # one who judged twice is not two
    assert alpha([(0, 0, 1), (0, 0, 2), (1, 0, 3)]).value is None
    assert alpha([(0, 0, 1), (0, 1, 1), (0, 0, 3), (1, 0, 2), (1, 1, 2)]).value == 1


def test_unknown_judges_are_different_people() -> None:
    found = alpha([(0, -1, 1), (0, -1, 1), (1, -1, 2), (1, -1, 2)])
    assert (found.value, found.n, found.units) == (1, 4, 2)


def test_answers_that_are_all_alike_leave_it_undefined_and_full_agreement_on_a_few_is_not_beyond_doubt() -> (
    None
):
    assert alpha([(0, 0, 1), (0, 1, 1)]).undefined == "all answers are alike"
    agreed = [(text, judge, text % 4) for text in range(8) for judge in range(2)]
    assert alpha(agreed, rng=np.random.default_rng(0)) == Figure(1.0, n=16, units=8)


@pytest.mark.parametrize("level", LEVELS)
def test_value_and_resamples_are_those_of_the_package_and_the_interval_holds_the_value(
    level: MeasurementLevel,
) -> None:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(3, np.full(4, 0.25), size=30)
    weights = rng.multinomial(30, np.full(30, 1 / 30), size=20)
    copied = [
        krippendorff.alpha(
            value_counts=np.repeat(counts, row, axis=0),
            value_domain=VALUES,
            level_of_measurement=level,
        )
        for row in weights
    ]
    assert _make_krippendorff_alpha_statistic(counts, VALUES, level)(
        weights.astype(float)
    ) == pytest.approx(copied, abs=1e-9)
    answers = np.clip(rng.integers(4, size=40) + rng.integers(-1, 2, size=(5, 40)), 0, 3)
    given = rng.random((5, 40)) < 0.5
    judged = [
        (int(text), int(judge), int(answers[judge, text]))
        for judge, text in zip(*given.nonzero(), strict=True)
    ]
    table = np.where(given, VALUES[answers], np.nan)
    found = alpha(judged, level, np.random.default_rng(0))
    theirs = krippendorff.alpha(table, level_of_measurement=level, value_domain=VALUES)
    assert found.value == pytest.approx(theirs, abs=1e-9)
    assert found.low < found.value < found.high  # type: ignore[operator]
