"""Rows of scores: what stands in a row where a rubric's occasion never came up."""

from rubric_set_by_hand import rubric_set

from pollex.formats.scores import answer_row
from pollex.rubrics.answers import NEVER_CAME_UP, Answer


def test_an_occasion_that_never_came_up_has_its_word_and_counts_as_the_set_says() -> None:
    found = rubric_set()
    rubric = found.rubrics[0]
    never = Answer(question_id=rubric.id, probabilities=(0.0,) * 5, chosen=5, source="point", judge="m")
    row = answer_row(never, rubric.polarity, found.model_copy(update={"never": {rubric.id: 3.25}}))
    assert (row["option"], row["value"], row["outcome"]) == (NEVER_CAME_UP, 3.25, "answered")
    assert answer_row(never, rubric.polarity, found)["value"] == 5.0
