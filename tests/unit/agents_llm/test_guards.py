"""Canaries, straight-lining and options: what keeps a judge honest."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import ABLE, LISTING, SALT, TALK, Scripted, asker, questions

from pollex.agents.llm.asker import PromptAsker
from pollex.agents.llm.judge import choose_canary, detect_straight_lining
from pollex.agents.llm.parsing import parse_last_object
from pollex.conversations.conversation import Conversation, Turn
from pollex.errors import ModelRefused, WrongUse
from pollex.prompts.domain import DomainProfile
from pollex.rubrics.answers import LIKERT_OPTIONS, Answer, Option, Question, Unanswered
from pollex.rubrics.judge_settings import JudgeSettings


def talk(text: str) -> Conversation:
    return Conversation(
        id="c", turns=(Turn(role="user", content=text), Turn(role="assistant", content="Yes."))
    )


@settings(deadline=None)
@given(st.text(max_size=100), st.sampled_from(["sat", "dsat"]), st.binary(min_size=1, max_size=8))
def test_a_canary_is_known_right_whatever_the_conversation_says(
    text: str, polarity: Any, salt: bytes
) -> None:
    conversation = talk(text)
    probe = choose_canary(conversation, questions("one", "two", polarity=polarity), salt)
    assert probe is not None
    assert 1 <= probe.place <= 3
    word = probe.text.removeprefix('The user uses the word "').removesuffix(
        '" in their first message.'
    )
    if word == probe.text:
        assert probe.true
    else:
        assert (word in text) == probe.true == (polarity == "dsat")
    assert "\n" not in probe.text


def test_a_canary_takes_the_side_that_a_planted_order_would_not() -> None:
    good, bad = (choose_canary(TALK, questions("one", polarity=p), SALT) for p in ("sat", "dsat"))
    assert good is not None
    assert bad is not None
    assert [good.passed(option) for option in range(5)] == [True, True, False, False, False]
    assert [bad.passed(option) for option in range(5)] == [False, False, False, True, True]


def test_the_same_call_has_the_same_canary_and_another_salt_another() -> None:
    asked = questions("one", "two", "three")
    assert choose_canary(TALK, asked, SALT) == choose_canary(TALK, asked, SALT)
    assert len({choose_canary(TALK, asked, bytes([i])) for i in range(20)}) > 10
    odd = Question(
        id="q", text="?", options=(Option(text="Yes", value=1), Option(text="No", value=0))
    )
    assert choose_canary(TALK, [*questions("one"), odd], SALT) is None, (
        "among other options than Likert's there is none"
    )


def answered(option: int, why: str = "", count: int = 5) -> list[Answer | Unanswered]:
    probabilities = tuple(float(i == option) for i in range(5))
    return [
        Answer(
            question_id=str(i),
            probabilities=probabilities,
            chosen=option,
            source="point",
            justification=why or str(i),
        )
        for i in range(count)
    ]


GOOD = questions(*"abcde")
BAD = questions(*"abcde", polarity="dsat")
MIXED = [*questions("a", "b", "c"), *questions("d", "e", polarity="dsat")]


NEVER = [
    Answer(
        question_id=str(i),
        probabilities=(0.0,) * 5,
        chosen=5,
        source="point",
        justification="No such thing.",
    )
    for i in range(5)
]


CAUGHT = Unanswered(question_id="caught", outcome="suspect", detail="the canary was answered wrong")
MANY_MIXED = [*questions(*"abcdef"), *BAD]
MANY_BAD = questions(*"abcdefghij", polarity="dsat")


@pytest.mark.parametrize(
    ("asked", "answers", "said"),
    [
        *[(MIXED, answered(option, "Nothing of it."), "") for option in range(5)],
        *[(MANY_MIXED, answered(option, count=11), "") for option in (0, 1, 2)],
        *[
            (MANY_MIXED, answered(option, count=11), LIKERT_OPTIONS[option].text)
            for option in (3, 4)
        ],
        (MANY_BAD, answered(4, "Because.", count=10), "same reason"),
        (MANY_BAD, answered(0, "Nothing of it.", count=10), ""),
        (MANY_BAD, answered(4, count=10), ""),
        (MANY_MIXED, [*answered(4, count=10), *answered(0, count=1)], ""),
        *[(MIXED, [CAUGHT, *answered(option, count=4)], "canary") for option in (0, 1, 3, 4)],
        (MIXED, [CAUGHT, *answered(2, count=4)], ""),
        (MIXED, [CAUGHT, *answered(4, count=3), *answered(0, count=1)], ""),
        (MIXED, [*answered(4, count=4), Unanswered(question_id="4", outcome="unparsable")], ""),
        (MIXED, NEVER, ""),
    ],
)
def test_answers_that_are_alike_are_straight_lining_beside_a_wrong_canary_or_where_many_agree(
    asked: list[Question], answers: Any, said: str
) -> None:
    found = detect_straight_lining(asked, answers)
    assert said in found
    assert bool(found) == bool(said)


@pytest.mark.parametrize(
    ("wrong", "clause"),
    [
        ({"without": frozenset({"gricean"})}, "no such part"),
        ({"batch": 11}, "batch is 11: input should be less than or equal to 10"),
        ({"batch": 0}, "batch is 0"),
        ({"samples": 0}, "samples is 0: .* → change it: samples="),
        ({"elicitation": "guessed"}, "elicitation is 'guessed': .*'batched' or 'independent'"),
    ],
)
def test_settings_that_cannot_be_met_are_wrong_use(wrong: dict[str, Any], clause: str) -> None:
    with pytest.raises(WrongUse, match=clause):
        JudgeSettings.of(**wrong)


def test_log_probabilities_make_samples_needless_and_can_be_required() -> None:
    assert asker(Scripted(), ABLE, samples=5).replicates == 5
    assert asker(Scripted(), LISTING, samples=5, require="logprobs").replicates == 1
    with pytest.raises(ModelRefused, match="scripted"):
        asker(Scripted(), ABLE, samples=5, require="logprobs")


def test_the_salt_is_needed_and_not_in_what_an_asker_shows() -> None:
    assert repr(SALT) not in repr(asker(Scripted()))
    with pytest.raises(WrongUse, match="no salt"):
        PromptAsker(Scripted(), ABLE, DomainProfile.neutral(), JudgeSettings(), b"")


@settings(deadline=None)
@given(st.text(st.characters(categories=["L", "P", "Cs"], include_characters='{}[]":,1\\u d')))
def test_no_text_whatever_breaks_the_reading(text: str) -> None:
    block = parse_last_object(text)
    assert block is None or isinstance(block.value, dict)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"1":' * 20_000 + "1" + "}" * 20_000, None),
        ('{"1": 1, "1": 2} no, rather {"1": 3}', {"1": 3}),
        # thoughts that never end
        ('<think> perhaps {"answer": "yes", "why": "so"}, but hm', None),
        (
            '{"answer": "no", "why": "asks about </think>"}',
            {"answer": "no", "why": "asks about </think>"},
        ),
    ],
    ids=["deep", "last", "thoughts", "of thoughts"],
)
def test_the_last_whole_object_beside_thoughts_is_the_answer(text: str, value: object) -> None:
    block = parse_last_object(text)
    assert (block and block.value) == value
