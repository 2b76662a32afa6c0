"""What a judge may do wrong about one conversation, and what is made of it."""

import math
from typing import Any

import pytest
from plain_judges import PlainJudge, Reply, likert, neutral, raises

from pollex.agents.roles import answer_each_question, split_by_polarity
from pollex.conversations.conversation import Conversation, Turn
from pollex.errors import ModelRefused
from pollex.rubrics.answers import Answer, Question, Unanswered

QUESTIONS = [Question(id=id_, text=f"Is it {id_}?") for id_ in ("a", "b")]
CONVERSATION = Conversation(
    id="c", turns=(Turn(role="user", content="Hi."), Turn(role="assistant", content="Hello."))
)
WHOLE = [Unanswered(question_id="", outcome="refused", detail="no")] * 2


def odd(**fields: object) -> Reply:
    """An answer to the first question that is no distribution, and a good one to the second."""
    return lambda _, questions: [
        likert(questions[0], 1).model_copy(update=fields),
        likert(questions[1], 4),
    ]


async def test_answers_come_in_the_order_of_the_questions_with_the_mass_they_have() -> None:
    assert await answer_each_question(PlainJudge(neutral), CONVERSATION, QUESTIONS) == [
        likert(q, 2) for q in QUESTIONS
    ]
    (first, _) = await answer_each_question(
        PlainJudge(odd(probabilities=(0.1, 0.2, 0.0, 0.0, 0.0))), CONVERSATION, QUESTIONS
    )
    assert isinstance(first, Answer)
    assert first.mass == pytest.approx(0.3)
    assert split_by_polarity(QUESTIONS) == [], "without a rubric they are on no side"


def gives(given: Any) -> Reply:
    return lambda _, __: given


@pytest.mark.parametrize(
    ("reply", "outcome", "said"),
    [
        (raises(KeyError("topsecretkey and sk-abcdefgh12345678")), "error", "KeyError: "),
        (gives(WHOLE), "refused", "no"),
        (gives([]), "error", "Mismatch"),
        (lambda _, questions: [likert(questions[0], 2)], "error", "Mismatch"),
        (lambda _, questions: [likert(q, 2) for q in questions[::-1]], "error", "Mismatch"),
        (
            lambda _, questions: [likert(q, 2) for q in [*questions, *questions]],
            "error",
            "Mismatch",
        ),
        (gives(None), "error", "Malformed: NoneType in place of answers"),
        (gives(one for one in ()), "error", "Malformed: generator in place of answers"),
        (gives([0.5, 0.5]), "error", "Malformed: float in place of answers"),
        (gives("ab"), "error", "Malformed: str in place of answers"),
    ],
)
async def test_what_fails_or_is_no_answer_leaves_each_question_unanswered_and_tells_no_key(
    reply: Reply, outcome: str, said: str
) -> None:
    found = await answer_each_question(PlainJudge(reply), CONVERSATION, QUESTIONS, ["topsecretkey"])
    assert [one.question_id for one in found] == ["a", "b"]
    for one in found:
        assert isinstance(one, Unanswered)
        assert (one.outcome, one.judge) == (outcome, "" if outcome == "refused" else "plain")
        assert one.detail.startswith(said)
        assert "topsecretkey" not in one.detail
        assert "sk-abcdefgh" not in one.detail


async def test_what_stops_all_work_is_not_caught() -> None:
    with pytest.raises(ModelRefused):
        await answer_each_question(
            PlainJudge(raises(ModelRefused("a wrong key"))), CONVERSATION, QUESTIONS
        )


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
async def test_what_is_no_distribution_is_no_answer_and_the_rest_stands(
    fields: dict[str, object],
) -> None:
    first, second = await answer_each_question(PlainJudge(odd(**fields)), CONVERSATION, QUESTIONS)
    assert isinstance(first, Unanswered)
    assert (first.question_id, first.outcome) == ("a", "error")
    assert second == likert(QUESTIONS[1], 4)
