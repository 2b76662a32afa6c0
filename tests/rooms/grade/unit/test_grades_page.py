"""The page of grades: its steps by hand, what it says without people or without grades, and that text stays text."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from pages_read import Reader, loud

from pollex.rooms.grade.agents.llm.reference_judge import (
    PLAIN_QUESTION_ID,
    CaseGrading,
    list_case_questions,
    make_plain_question,
)
from pollex.rooms.grade.conversations.references import ReferenceCase
from pollex.rooms.grade.formats.grade_summary import GradeSummary, summarize_grades
from pollex.rooms.grade.prompts.grading.profile import ReferencingProfile
from pollex.rooms.grade.reports.grades import (
    compute_step_corners,
    draw_cumulative_chart,
    render_grades_page,
)
from pollex.rubrics.answers import Answer, Unanswered

PROFILE = ReferencingProfile.load("english")
HOSTILE = '<img src="http://evil.example" onerror=alert(1)>'


def grading(
    number: int, rules: int | None, plain: int | None = None, human: float | None = None
) -> CaseGrading:
    case = ReferenceCase(
        id=str(number),
        question="Why?",
        reference="So.",
        answer="Thus.",
        category=HOSTILE,
        human=human,
    )
    answers: dict[str, Answer | Unanswered] = {}
    for question in list_case_questions(PROFILE, case, None):
        answers[question.id] = (
            Unanswered(question_id=question.id, outcome="unparsable", detail="off the scale")
            if rules is None
            else point(question.id, rules)
        )
    if plain is not None:
        answers[PLAIN_QUESTION_ID] = point(make_plain_question(PROFILE).id, plain)
    return CaseGrading(
        case, None, "unsure", tuple(list_case_questions(PROFILE, case, None)), answers
    )


def point(id_: str, grade: int) -> Answer:
    mass = tuple(float(one == grade) for one in PROFILE.grades)
    return Answer(
        question_id=id_, probabilities=mass, chosen=grade - PROFILE.lowest, source="point"
    )


def added_up(
    rules: Sequence[int | None], plain: Sequence[int] = (), human: Sequence[float] = ()
) -> GradeSummary:
    others = [list(given) + [None] * (len(rules) - len(given)) for given in (plain, human)]
    return summarize_grades(
        PROFILE, [grading(i, *grades) for i, grades in enumerate(zip(rules, *others, strict=True))]
    )


def page_of(found: GradeSummary) -> str:
    return render_grades_page(found, judge="<b>judge</b>", pivot=8)


def test_steps_rise_at_their_levels_and_stay_between_them() -> None:
    xs, ys = compute_step_corners(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.5, 1.0]), 0.5)
    assert list(zip(xs, ys, strict=True)) == [(0.5, 0), (1, 0), (1, 0.5), (3, 0.5), (3, 1), (3, 1)]
    xs, ys = compute_step_corners(np.array([1.0, 2.0]), np.array([0.0, 0.0]), 0.5)
    assert list(zip(xs, ys, strict=True)) == [(0.5, 0), (2, 0)], (
        "grades that are all above the scale's end"
    )


def test_without_any_grade_the_page_says_so_and_shows_no_number() -> None:
    page = page_of(added_up([None, None]))
    assert "There are no grades." in page
    assert "2\N{NO-BREAK SPACE}cases: unparsable" in page
    assert "nan" not in page.lower().replace("pollex", "")
    assert "There are no grades." in page_of(added_up([]))


def test_without_people_and_with_unequal_numbers_of_grades_it_warns_and_else_it_does_not() -> None:
    alone = "These are grades by a model."
    people = page_of(added_up([7, 7, 8], [9, 9, 9], human=[6, 7, 8]))
    unequal = "The lines are not based on the same answers"
    assert alone in page_of(added_up([7, 8]))
    assert unequal in page_of(added_up([7, None, 8], [9, 9, 9]))
    assert alone not in people
    assert unequal not in people


def test_a_difference_that_may_be_chance_is_called_noise_and_a_clear_one_is_not() -> None:
    draw = np.random.default_rng(0)
    human = draw.integers(2, 7, 120)
    near, far = (draw.permutation(human) for _ in range(2))
    same = page_of(added_up(near.tolist(), far.tolist(), human.tolist()))
    assert "may be noise: the interval includes 0" in same
    better = page_of(added_up(near.tolist(), (human + 3).tolist(), human.tolist()))
    assert "more than noise" in better
    assert "rules minus plain" in better


def test_each_judge_has_a_curve_and_the_references_grade_is_marked() -> None:
    drawn = draw_cumulative_chart(added_up([7, 8, 8], [9, 9, 10], [6, 7, 8]), 8.0)
    assert re.findall(r'class="curve (\w+)"', drawn) == ["ink", "negative", "positive"]
    assert ">reference</text>" in drawn
    assert "(3\N{NO-BREAK SPACE}grades)" in drawn


def test_the_grades_in_the_table_are_means_with_their_numbers() -> None:
    page = page_of(added_up([5, 6, 7, 8, 9, None], human=[5, 6, 10]))
    assert re.search(r"7.00<small>5.[12]\d to 8.[68]\d</small><small>n = 5</small>", page)
    assert "7.00<small>too few for an interval</small><small>n = 3</small>" in page
    heads = re.findall(r'<th scope="col">([^<]*)</th>', page.partition("Means by category")[2])
    assert heads[:3] == ["Category", "Overall, by rules", "Overall, people"]
    assert len(heads) > 3


@pytest.mark.parametrize("rules", [[7], [7, 8, 9]])
def test_foreign_text_is_escaped_and_the_page_asks_for_nothing_from_outside(
    rules: list[int | None],
) -> None:
    page = page_of(added_up(rules))
    assert loud(Reader(page)) == set()
    assert "<b>" not in page
    assert "&lt;b&gt;judge" in page
    assert "//" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
    assert not re.search(r"\bcalibrated\b", page)
