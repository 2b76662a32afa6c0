import krippendorff
import numpy as np
import pytest

from pollex.calibration.judgments import Judgments
from pollex.calibration.questionnaire import Scale
from pollex.measures.correlations import Level, _alpha_statistic
from pollex.measures.correlations import alpha as alpha_of
from pollex.measures.intervals import Figure

FOUR = Scale("q", (1.0, 2.0, 3.0, 4.0))


def alpha(
    judged: Judgments, scale: Scale, level: Level = "ordinal", rng: np.random.Generator | None = None, count: int = 300
) -> Figure:
    return alpha_of(judged.row, judged.judge, judged.answer, scale.values, level, rng, count)


def given(records: list[tuple[int, int, int]]) -> Judgments:
    """From (text, judge, place of the answer)."""
    row, judge, answer = (np.array(column, dtype=np.int64) for column in zip(*records, strict=True))
    return Judgments(row, np.zeros_like(row), judge, answer, tuple(map(str, range(int(judge.max(initial=0)) + 1))))


def random_judgments(seed: int = 0) -> Judgments:
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=40)
    return given([
        (text, judge, int(np.clip(truth[text] + rng.integers(-1, 2), 0, 3)))
        for text in range(40)
        for judge in range(5)
        if rng.random() < 0.5
    ])  # fmt: skip


def test_without_two_judges_of_a_text_there_is_no_agreement() -> None:
    found = alpha(given([(0, 0, 1), (1, 1, 2), (2, 0, 3)]), FOUR)
    assert found == Figure(None, n=0, undefined="no text has two judges", units=0)
    nothing = Judgments(*(np.zeros(0, np.int64) for _ in range(4)))
    assert alpha(nothing, FOUR).undefined == "no text has two judges"


def test_one_judge_who_judged_twice_is_not_two_judges() -> None:
    assert alpha(given([(0, 0, 1), (0, 0, 2), (1, 0, 3)]), FOUR).value is None
    twice = given([(0, 0, 1), (0, 1, 1), (0, 0, 3), (1, 0, 2), (1, 1, 2)])
    assert alpha(twice, FOUR).value == 1


def test_unknown_judges_are_different_people() -> None:
    found = alpha(given([(0, -1, 1), (0, -1, 1), (1, -1, 2), (1, -1, 2)]), FOUR)
    assert (found.value, found.n, found.units) == (1, 4, 2)


def test_answers_that_are_all_alike_leave_it_undefined() -> None:
    assert alpha(given([(0, 0, 1), (0, 1, 1)]), FOUR).undefined == "all answers are alike"


def test_full_agreement_on_a_few_texts_is_not_beyond_doubt() -> None:
    agreed = given([(text, judge, text % 4) for text in range(8) for judge in range(2)])
    assert alpha(agreed, FOUR, rng=np.random.default_rng(0)) == Figure(1.0, n=16, units=8)


def test_nominal_agreement_worked_by_hand() -> None:
    # Texts aa, ab, bb: pairable values 3 a and 3 b. Of 6 coincidences 2 (ab, ba) disagree; by chance 2·3·3/5 = 3.6.
    found = alpha(given([(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1), (2, 0, 1), (2, 1, 1)]), FOUR, "nominal")
    assert found.value == pytest.approx(1 - 2 / 3.6)
    assert (found.n, found.units) == (6, 3)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_resamples_agree_with_the_package_on_copied_texts(level: str) -> None:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(3, np.full(4, 0.25), size=30)
    values = np.array([1.0, 2.0, 4.0, 8.0])
    weights = rng.multinomial(30, np.full(30, 1 / 30), size=20).astype(float)
    copied = [
        krippendorff.alpha(
            value_counts=np.repeat(counts, row.astype(int), axis=0), value_domain=values, level_of_measurement=level
        )
        for row in weights
    ]
    assert _alpha_statistic(counts, values, level)(weights) == pytest.approx(copied, abs=1e-9)  # type: ignore[arg-type]


def test_the_value_is_the_packages_and_the_interval_holds_it() -> None:
    judged = random_judgments()
    table = np.full((5, 40), np.nan)
    table[judged.judge, judged.row] = judged.answer + 1.0
    for level in ("nominal", "ordinal", "interval"):
        found = alpha(judged, FOUR, level, np.random.default_rng(0), 300)  # type: ignore[arg-type]
        assert found.value == pytest.approx(
            krippendorff.alpha(table, level_of_measurement=level, value_domain=np.arange(1.0, 5.0)), abs=1e-9
        )
        assert found.low < found.value < found.high  # type: ignore[operator]
