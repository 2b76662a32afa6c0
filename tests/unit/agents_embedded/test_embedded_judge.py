"""The built-in judge: its scale by hand, honest answers on what it studied, the same answers after storage."""

import asyncio
import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from small_logs import bad, conversation, good

from pollex.agents.embedded.embedder import Embedder
from pollex.agents.embedded.judge import (
    LOG_ODDS_GAIN,
    EmbeddedJudge,
    assign_stratified_folds,
    learn_scale_of_rubric,
    measure_class_separation,
)
from pollex.agents.embedded.signals import SIGNALS_BY_NAME
from pollex.conversations.conversation import Conversation, Label
from pollex.errors import BadRubrics
from pollex.rubrics.answers import LIKERT_OPTIONS, Answer, Question, Unanswered
from pollex.rubrics.rubric import Quote, Rubric

THANKS = Rubric(
    id="thanks", text="The user thanks the assistant.", polarity="sat", source="signal:thanks"
)
REFUSAL = Rubric(
    id="refusal",
    text="The assistant gives a negative answer.",
    polarity="dsat",
    source="signal:refusal",
)
PHRASE = Rubric(
    id="phrase", text="The user says “still”.", polarity="dsat", source="phrase:user:still"
)
QUOTED = Rubric(
    id="quoted",
    text="The assistant finds the cause.",
    polarity="sat",
    source="turns:assistant:0",
    quotes=(
        Quote(
            conversation_id="good-00",
            turn=1,
            text="The cause is the setting in line 3. I have fixed it.",
        ),
    ),
)
BY_HAND = Rubric(id="hand", text="The user is grateful that the problem is solved.", polarity="sat")
BY_HAND_DSAT = Rubric(
    id="hand-", text="The assistant says sorry because it is unable to help.", polarity="dsat"
)
RUBRICS = [THANKS, REFUSAL, PHRASE, QUOTED, BY_HAND, BY_HAND_DSAT]
QUESTIONS = [Question.about(rubric) for rubric in RUBRICS]


def studied(embedder: Embedder, log: Sequence[Conversation]) -> EmbeddedJudge:
    judge = EmbeddedJudge(embedder)
    asyncio.run(judge.fit(log, RUBRICS))
    return judge


def answers(
    judge: EmbeddedJudge, one: Conversation, questions: Sequence[Question] = QUESTIONS
) -> list[Answer]:
    found = asyncio.run(judge.judge(one, questions))
    assert all(isinstance(answer, Answer) for answer in found)
    return found  # type: ignore[return-value]


def values(judge: EmbeddedJudge, one: Conversation) -> dict[str, float]:
    return {answer.question_id: answer.value() for answer in answers(judge, one)}


@pytest.fixture(scope="module")
def learnt(embedder: Embedder, log: list[Conversation]) -> EmbeddedJudge:
    return studied(embedder, log)


def test_what_is_not_scorable_gets_a_reason_and_no_number_and_hostile_text_is_answered(
    embedder: Embedder, learnt: EmbeddedJudge
) -> None:
    for said in ((), (("u", "hi"),), (("a", "hi"),), (("u", " "), ("a", "hi")), (("tool", "x"),)):
        found = asyncio.run(EmbeddedJudge(embedder).judge(conversation(*said), QUESTIONS))
        assert len(found) == len(QUESTIONS)
        assert all(
            isinstance(answer, Unanswered) and answer.outcome == "not_scorable" for answer in found
        )
    for said in (
        (("u", "\ud800\x00"), ("a", "\u202e😀")),
        (("u", "x" * 200_000), ("a", "\n" * 200_000 + "y")),
        (("system", "s"), ("u", "?" * 9_000), ("tool", "t"), ("a", "`" * 9_000)),
    ):
        for answer in (
            *answers(EmbeddedJudge(embedder), conversation(*said)),
            *answers(learnt, conversation(*said)),
        ):
            assert all(0 <= p <= 1 for p in answer.probabilities)
            assert answer.mass == pytest.approx(1, abs=1e-9)


def test_a_rubric_is_answered_by_its_evidence_once_studied_and_after_storage(
    embedder: Embedder, learnt: EmbeddedJudge
) -> None:
    up = values(learnt, good(90))
    down = values(learnt, bad(91))
    for sat in (THANKS, QUOTED, BY_HAND):
        assert up[sat.id] > 5 > down[sat.id]
    for dsat in (REFUSAL, PHRASE, BY_HAND_DSAT):
        assert down[dsat.id] > 5 > up[dsat.id]
    restored = EmbeddedJudge(embedder, json.loads(json.dumps(learnt.learned)))
    assert restored.fingerprint == learnt.fingerprint
    for one in (good(90), bad(91), conversation(("u", "neither"), ("a", "nor"))):
        assert answers(restored, one) == answers(learnt, one)
    for log in (
        [],
        [good(number) for number in range(5)],
        [good(1).model_copy(update={"label": Label.NONE})],
    ):
        assert studied(embedder, log).learned == {}, "one class or nothing teaches nothing"
    upside_down = THANKS.model_copy(update={"polarity": "dsat"})
    judge = EmbeddedJudge(embedder)
    asyncio.run(judge.fit([make(n) for n in range(20) for make in (good, bad)], [upside_down]))
    (answer,) = answers(judge, good(90), [Question.about(upside_down)])
    assert answer.expected() == pytest.approx(5)
    assert "tells nothing" in answer.justification


def test_a_hand_written_rubric_is_answered_by_likeness_before_any_study(embedder: Embedder) -> None:
    judge = EmbeddedJudge(embedder)
    up = values(judge, good(90))
    down = values(judge, bad(91))
    assert up[BY_HAND.id] > down[BY_HAND.id]
    assert down[BY_HAND_DSAT.id] > up[BY_HAND_DSAT.id]


def test_the_order_of_rows_changes_nothing_to_the_last_digit(
    embedder: Embedder, log: list[Conversation], learnt: EmbeddedJudge
) -> None:
    shuffled = studied(embedder, [log[i] for i in np.random.default_rng(0).permutation(len(log))])
    assert shuffled.learned == learnt.learned
    assert [answers(shuffled, one) for one in log] == [answers(learnt, one) for one in log]


def test_a_studied_conversation_is_answered_on_a_scale_learnt_without_it(
    embedder: Embedder, log: list[Conversation], learnt: EmbeddedJudge
) -> None:
    one = log[0]
    fold = assign_stratified_folds(
        [c.text_hash for c in log], np.array([c.label is Label.POSITIVE for c in log])
    )
    without = [c for c, number in zip(log, fold, strict=True) if number != fold[0]]
    alone = EmbeddedJudge(embedder, studied(embedder, without).learned)
    whole = EmbeddedJudge(embedder, learnt.learned)
    assert values(learnt, one) == values(alone, one)
    assert values(learnt, one) != values(whole, one)


def test_the_turns_named_are_those_that_carry_the_evidence(embedder: Embedder) -> None:
    one = conversation(
        ("u", "help"), ("a", "here"), ("u", "thanks"), ("a", "bye"), ("u", "thanks again")
    )
    (answer,) = answers(EmbeddedJudge(embedder), one, [Question.about(THANKS)])
    assert answer.turns == (2, 4)
    two = Question(id="q", text="The user thanks the assistant.", options=LIKERT_OPTIONS[:2])
    (answer,) = answers(EmbeddedJudge(embedder), good(1), [two])
    assert len(answer.probabilities) == 2, "any number of options"
    assert answer.mass == pytest.approx(1)


def test_the_scale_by_hand() -> None:
    # One measure: good ones 3 and 5, bad ones 1 and 3. Means 4 and 2, middle 3, spread √2, δ = 2/√2
    # over 4 and 40 more.
    measures = np.array([[3.0], [5.0], [1.0], [3.0]])
    positive = np.array([True, True, False, False])
    delta, middle, spread = measure_class_separation(measures, positive)
    assert middle == pytest.approx([3])
    assert spread == pytest.approx([math.sqrt(2)])
    assert delta == pytest.approx([4 * math.sqrt(2) / 44])
    leaning, _, _ = measure_class_separation(measures, positive, lean=-1)
    assert leaning == pytest.approx([(4 * math.sqrt(2) - 40 * 0.3) / 44])
    scale = learn_scale_of_rubric(measures, positive, +1)
    assert scale.odds(np.array([5.0])) == pytest.approx(
        LOG_ODDS_GAIN * math.sqrt(2) * 4 * math.sqrt(2) / 44, rel=1e-5
    )
    assert scale.odds(np.array([1e9])) == pytest.approx(
        LOG_ODDS_GAIN * 2.5 * 4 * math.sqrt(2) / 44, rel=1e-5
    )
    assert learn_scale_of_rubric(measures, positive, -1).weight.tolist() == [0.0]
    constant = learn_scale_of_rubric(np.ones((6, 4)), np.arange(6) < 3, +1)
    assert np.isfinite(constant.odds(np.zeros(4)))


def test_who_has_the_last_word_says_nothing_where_each_conversation_ends_alike() -> None:
    """Conversations that go wrong have more turns, so that the last turn is a smaller share of them."""
    positive = np.arange(40) < 20
    endings = SIGNALS_BY_NAME["assistant_ends"]
    turns = np.where(positive, 2, 6)
    share, amount = 1 / turns, np.full(40, np.log(2.0))
    alike = np.stack([share, amount, np.ones(40), np.zeros(40)], axis=1)
    assert learn_scale_of_rubric(alike, positive, 1, 0, endings.telling_measures).weight.sum() == 0
    ends = (np.arange(40) % 20 < np.where(positive, 15, 5)).astype(float)
    apart = np.stack([share * ends, amount * ends, ends, ends], axis=1)
    weight = learn_scale_of_rubric(apart, positive, 1, 0, endings.telling_measures).weight
    assert np.flatnonzero(weight).tolist() == [2], "only how it ends"
    assert SIGNALS_BY_NAME["steps"].telling_measures.all()


def test_what_a_judge_learned_is_checked_when_it_is_built(embedder: Embedder) -> None:
    for odd in (None, {"middle": [1.0]}, {"middle": [1, 2], "spread": [1, 2], "weight": ["a", 2]}):
        with pytest.raises(
            BadRubrics, match=r"judge\.learned\.r1: middle, spread and weight are not 4 numbers"
        ):
            EmbeddedJudge(embedder, {"r1": odd})
