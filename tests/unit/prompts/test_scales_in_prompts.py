"""What a prompt says of the options of a statement: words speak for themselves, grades don't."""

from pollex.prompts.domain import DomainProfile
from pollex.prompts.judging import meaning
from pollex.prompts.prompt import load
from pollex.rubrics.answers import LIKERT, NUMERIC, SCALES, Answer, Question
from pollex.rubrics.rubric import Rubric

RUBRIC = Rubric(id="r", text="The user thanks.", polarity="sat")


def closing(name: str, options: list[str]) -> str:
    gaps = {"items": "1. x", "item": "x", "options": "…", **meaning(options)}
    return load(name).render("closing", DomainProfile.neutral().values() | gaps)


def test_grades_are_explained_and_words_are_not() -> None:
    grades, words = ([option.text for option in scale] for scale in (NUMERIC, LIKERT))
    for name in ("judge_batch_paper", "judge_question"):
        assert "from 1, not at all, to 10, wholly" in closing(name, grades)
        assert "5 if not applicable" in closing(name, grades)
        assert "Neutral if not applicable" in closing(name, words)
        assert "from" not in closing(name, words)


def test_an_answer_tells_the_scale_it_was_given_on() -> None:
    graded = Answer(question_id="r", probabilities=(0.0,) * 9 + (1.0,), chosen=9, source="point")
    worded = Answer(question_id="r", probabilities=(0.0, 0.5, 0.0, 0.5, 0.0), chosen=1, source="logprobs")
    assert (graded.value(), worded.value(), worded.mode()) == (10.0, 5.0, 2.5)
    assert [round(option.value, 3) for option in NUMERIC[:3]] == [0.0, 1.111, 2.222]
    assert (NUMERIC[-1].text, NUMERIC[-1].value) == ("10", 10.0)
    assert [Question.about(RUBRIC, scale).options for scale in SCALES] == [LIKERT, LIKERT, LIKERT, NUMERIC]
