"""What a brief has people write into a prompt: nothing that a prompt could only have made up."""

import pytest
from rubric_set_by_hand import rubric

from pollex.agents.embedded.events.patterns import PATTERNS_BY_NAME
from pollex.agents.embedded.signals import SIGNALS_BY_NAME
from pollex.conversations.conversation import Conversation, ToolCall, Turn
from pollex.rooms.remedy.services.advice import find_advice, list_event_advice
from pollex.rooms.remedy.services.contexts import find_reply_of_evidence
from pollex.rubrics.records import ChosenRubric
from pollex.rubrics.rubric import Polarity


def of(source: str, side: Polarity = "dsat", text: str = "") -> ChosenRubric:
    return rubric(1, side).model_copy(update={"source": source, "text": text})


def test_the_table_of_advice_names_each_signal_and_nothing_that_is_not_there() -> None:
    listed = [name for kind in list_event_advice() for name in kind.events]
    assert len(listed) == len({*listed})
    assert {*listed} <= PATTERNS_BY_NAME.keys() | SIGNALS_BY_NAME.keys()
    assert PATTERNS_BY_NAME.keys() | SIGNALS_BY_NAME.keys() <= {*listed}


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("signal:specifics", "figures"),
        ("event:done_detail", "figures"),
        ("event:refused", "refusals"),
        ("signal:refusal", "refusals"),
        ("signal:warmth", "tones"),
        ("event:given_up", "outcomes"),
        ("event:answer_unknown", "knowledge"),
        ("phrase:assistant:hotline", "words"),
    ],
)
@pytest.mark.parametrize("side", ["dsat", "sat"])
def test_figures_tones_refusals_and_outcomes_get_no_sentence_and_say_why(
    source: str, kind: str, side: Polarity
) -> None:
    advice = find_advice(of(source, side))
    assert (advice.kind, advice.sentence) == (kind, "")
    assert advice.why


def test_a_hidden_failure_is_to_be_said_and_a_dead_end_gets_another_way() -> None:
    hidden = find_advice(of('event:tool_fails_hidden {"detail":"`travel`"}'))
    assert "say so" in hidden.sentence
    assert "offer" in find_advice(of("event:fail_no_way")).sentence
    assert find_advice(of("event:fail_no_way", "sat")).sentence == ""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "The assistant makes no proposal when the wanted time is not to be had.",
            "offer_another_way",
        ),
        (
            "The assistant leaves the user's question about prices without an answer.",
            "answer_the_question",
        ),
        ("The assistant asks for the order number again.", "dont_ask_again"),
        ("The assistant answers in another language than the user writes.", "keep_to_the_language"),
        ("The assistant refuses to cancel the order.", "refusals"),
        ("The user takes another time that the assistant names.", "outcomes"),
        ("The assistant compares both models.", ""),
    ],
)
def test_a_rubric_in_words_of_a_model_is_told_by_its_words_and_unclear_ones_get_no_sentence(
    text: str, kind: str
) -> None:
    advice = find_advice(of("summarize_dsat@1", text=text))
    assert advice.kind == kind
    assert bool(advice.sentence) != bool(advice.why)


def test_evidence_in_a_call_or_its_result_is_that_of_the_reply_that_follows() -> None:
    call = ToolCall(name="travel", arguments="{}")
    turns = (
        Turn(role="user", content="A trip, please."),
        Turn(role="assistant", content="One moment.", calls=(call,)),
        Turn(role="tool", content="connection refused"),
        Turn(role="assistant", content="All done!"),
        Turn(role="user", content="Thanks."),
        Turn(role="assistant", content="Bye."),
    )
    talk = Conversation(id="t", turns=turns)
    assert [find_reply_of_evidence(talk, [n]) for n in range(6)] == [None, 3, 3, 3, None, 5]
