"""What a judge may do wrong about one conversation, and what is made of it."""

import math
from typing import Any

import pytest
from plain_judges import Answers, PlainJudge, Reply, likert, neutral, raises

from pollex.agents.roles import answered, sides
from pollex.conversations.conversation import Conversation, Turn
from pollex.errors import ModelRefused
from pollex.rubrics.answers import Answer, Question, Unanswered

QUESTIONS = [Question(id=id_, text=f"Is it {id_}?") for id_ in ("a", "b")]
CONVERSATION = Conversation(id="c", turns=(Turn(role="user", content="Hi."), Turn(role="assistant", content="Hello.")))


def odd(**fields: object) -> Reply:
    """An answer to the first question that is no distribution, and a good one to the second."""
    return lambda _, questions: [likert(questions[0], 1).model_copy(update=fields), likert(questions[1], 4)]


async def test_answers_come_in_the_order_of_the_questions() -> None:
    assert await answered(PlainJudge(neutral), CONVERSATION, QUESTIONS) == [likert(q, 2) for q in QUESTIONS]


async def test_an_exception_is_a_failure_of_every_question_with_its_kind_and_no_key() -> None:
    judge = PlainJudge(raises(KeyError("topsecretkey and sk-abcdefgh12345678")))
    found = await answered(judge, CONVERSATION, QUESTIONS, ["topsecretkey"])
    assert [(one.question_id, one.outcome, one.judge) for one in found if isinstance(one, Unanswered)] == [
        ("a", "error", "plain"),
        ("b", "error", "plain"),
    ]
    for one in found:
        assert isinstance(one, Unanswered)
        assert one.detail.startswith("KeyError: ")
        assert "topsecretkey" not in one.detail
        assert "sk-abcdefgh" not in one.detail


async def test_what_stops_all_work_is_not_caught() -> None:
    with pytest.raises(ModelRefused):
        await answered(PlainJudge(raises(ModelRefused("a wrong key"))), CONVERSATION, QUESTIONS)


@pytest.mark.parametrize(
    "reply",
    [
        lambda _, questions: [],
        lambda _, questions: [likert(questions[0], 2)],
        lambda _, questions: [likert(questions[1], 2), likert(questions[0], 2)],
        lambda _, questions: [likert(q, 2) for q in [*questions, *questions]],
    ],
    ids=["none", "too few", "other order", "too many"],
)
async def test_answers_that_do_not_fit_the_questions_are_none(reply: Reply) -> None:
    found = await answered(PlainJudge(reply), CONVERSATION, QUESTIONS)
    assert [(one.question_id, isinstance(one, Unanswered)) for one in found] == [("a", True), ("b", True)]
    assert "Mismatch" in str(found[0])


@pytest.mark.parametrize(
    ("given", "said"),
    [(None, "NoneType"), ((one for one in ()), "generator"), ([0.5, 0.5], "float"), ("ab", "str")],
    ids=["nothing", "generator", "numbers", "a word"],
)
async def test_what_is_no_answer_at_all_is_none(given: Any, said: str) -> None:
    found = await answered(PlainJudge(lambda _, __: given), CONVERSATION, QUESTIONS)
    assert [one.question_id for one in found] == ["a", "b"]
    for one in found:
        assert isinstance(one, Unanswered)
        assert one.detail == f"Malformed: {said} in place of answers"


@pytest.mark.parametrize(
    "fields",
    [
        {"probabilities": (0.0,) * 5},
        {"probabilities": (math.nan, 0.0, 0.0, 0.0, 1.0)},
        {"probabilities": (0.5, 0.5)},
        {"probabilities": (-0.5, 1.5, 0.0, 0.0, 0.0)},
        {"probabilities": (1.0, 1.0, 0.0, 0.0, 0.0)},
        {"probabilities": (math.inf, 0.0, 0.0, 0.0, 0.0)},
        {"chosen": 5},
        {"chosen": -1},
    ],
    ids=str,
)
async def test_what_is_no_distribution_is_no_answer_and_the_rest_stands(fields: dict[str, object]) -> None:
    first, second = await answered(PlainJudge(odd(**fields)), CONVERSATION, QUESTIONS)
    assert isinstance(first, Unanswered)
    assert (first.question_id, first.outcome) == ("a", "error")
    assert second == likert(QUESTIONS[1], 4)


async def test_mass_below_one_is_kept_as_it_is() -> None:
    (first, _) = await answered(PlainJudge(odd(probabilities=(0.1, 0.2, 0.0, 0.0, 0.0))), CONVERSATION, QUESTIONS)
    assert isinstance(first, Answer)
    assert first.mass == pytest.approx(0.3)


async def test_a_failure_of_a_whole_call_is_one_of_each_question() -> None:
    def whole(_conversation: Conversation, questions: object) -> Answers:
        return [Unanswered(question_id="", outcome="refused", detail="no") for _ in QUESTIONS]

    found = await answered(PlainJudge(whole), CONVERSATION, QUESTIONS)
    assert [(one.question_id, isinstance(one, Unanswered) and one.outcome) for one in found] == [
        ("a", "refused"),
        ("b", "refused"),
    ]


def test_questions_without_a_rubric_are_on_no_side() -> None:
    assert sides(QUESTIONS) == []
