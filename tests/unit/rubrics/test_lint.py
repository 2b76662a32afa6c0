"""Rubrics that are hard to judge are marked, with better words where there are some."""

import pytest
from rubric_set_by_hand import figure, rubric, rubric_set

from pollex.rubrics.lint import marks_on_answers, marks_on_pairs, marks_on_words
from pollex.rubrics.records import Alone, ChosenRubric
from pollex.rubrics.rubric import Rubric


def said(text: str, source: str = "extract_sat@1") -> list[tuple[str, tuple[str, ...]]]:
    return [
        (mark.why, mark.better) for mark in marks_on_words(Rubric(id="r", text=text, polarity="sat", source=source))
    ]


@pytest.mark.parametrize(
    ("text", "why", "better"),
    [
        (
            "The assistant asks for the date and names the price.",
            "two parts",
            ("The assistant asks for the date.", "The assistant names the price."),
        ),
        ("The assistant recommends films that were seen or disliked.", "two parts", ()),
        ("The assistant describes each film.", "“each”", ("The assistant describes the film.",)),
        ("The assistant answers all of the questions.", "“all”", ("The assistant answers the questions.",)),
        ("The assistant only names titles.", "“only”", ("The assistant names titles.",)),
        ("The assistant fails to name a price.", "presupposes", ("The assistant does not name a price.",)),
        ("The description comes too late for the decision.", "“too late” presupposes", ()),
    ],
)
def test_a_sentence_that_is_hard_to_judge_is_marked(text: str, why: str, better: tuple[str, ...]) -> None:
    ((found, instead),) = said(text)
    assert why in found
    assert instead == better


def test_a_plain_sentence_and_what_a_detector_decides_are_not_marked() -> None:
    for text, source in (
        ("The assistant names the price before it books.", "extract_sat@1"),
        ("The user says “only this and that”.", "extract_sat@1"),
        ("The user chooses between the morning and the evening.", "extract_sat@1"),
        ("The assistant offers another time, and the user takes it.", "event:fail_other_taken"),
    ):
        assert said(text, source) == []


def test_a_rubric_that_tells_nothing_or_rests_on_one_conversation_is_marked() -> None:
    found = rubric_set()
    alone = Alone(by="model", spread=0.2, commonest="Neutral", share=figure(0.95), auc=figure(0.5))
    constant: ChosenRubric = rubric(1, "sat").model_copy(update={"alone": alone})
    whys = [mark.why for mark in marks_on_answers(constant, {reason.id: reason for reason in found.reasons})]
    assert whys == ["all but constant: “Neutral” in 95% of 20 training conversations", "rests on one conversation"]
    rare = constant.model_copy(update={"alone": alone.model_copy(update={"by": "event"}), "source": "event:fail_left"})
    assert marks_on_answers(rare, {}) == [], "an event that happens seldom is not hard to judge"


def test_a_pair_is_a_twin_on_one_side_and_a_mirror_across_sides() -> None:
    marks = marks_on_pairs([rubric(1, "sat"), rubric(2, "sat"), rubric(3, "dsat")], [(0, 1), (0, 2)])
    assert [mark.why.split(" of ")[0] for mark in marks] == ["near twin", "mirror"]
    assert [mark.other for mark in marks] == ["rubric1", "rubric1"]
