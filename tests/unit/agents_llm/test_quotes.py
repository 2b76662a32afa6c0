"""Quotes: what is not in the conversation is no quote."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pollex.agents.checks import located, unescaped
from pollex.agents.llm.asker import turns_as_items
from pollex.conversations.conversation import Conversation, ToolCall, Turn
from pollex.reports.transcript import marked_turns

TALK = Conversation(
    id="c",
    turns=(
        Turn(role="user", content="My  List<int>\n\tis\u00a0empty."),
        Turn(role="assistant", content='Print "x\\n" first. Thanks!'),
        Turn(role="user", content="Thanks! It works."),
    ),
)


@pytest.mark.parametrize(
    "text", ["", "  \n ", "It never works.", "“…”", "is empty. Print", "Thanks It works", "It … thanks"]
)
def test_what_does_not_stand_in_one_turn_is_no_quote(text: str) -> None:
    assert located(TALK, text, 0) is None


def test_a_call_is_quoted_with_its_arguments_as_prompts_show_them() -> None:
    call = ToolCall(name="book", arguments='{"day": "Friday"}')
    turn = Turn(role="assistant", content=f"Wait. {call.mark}", calls=(call,))
    talk = Conversation(id="c", turns=(Turn(role="user", content="On Sunday."), turn))
    assert [item["text"] for item in turns_as_items(talk)][1] == 'Wait. [tool call: book] {"day": "Friday"}'
    quote = located(talk, 'tool call: book] {"day": "Friday', 1)
    assert quote is not None
    assert quote.text == 'tool call: book] {"day": "Friday'
    assert marked_turns(talk.turns, {1: [(quote.text, "dsat")]})[1].parts[1].text == quote.text


@pytest.mark.parametrize(
    ("quote", "own"),
    [
        ("i can’t find it - SORRY", "I can't find it — sorry"),
        ("“say 'go' to it”", "Say “go” to it"),
        ("I can't … sorry...", "I can't find it — sorry"),
        ("Say [...] it", "Say “go” to it"),
        ("and then ... it stops", "and then… it  stops"),
    ],
)
def test_marks_dashes_case_and_an_ellipsis_may_differ_and_the_turns_own_words_are_kept(quote: str, own: str) -> None:
    talk = Conversation(
        id="c", turns=(Turn(role="user", content="I can't find it — sorry.\nSay “go” to it, and then… it  stops"),)
    )
    found = located(talk, quote, 0)
    assert found is not None
    assert found.text == " ".join(own.split())
    long = Conversation(id="c", turns=(Turn(role="user", content=f"It stops {'again ' * 100}and I wait"),))
    assert located(long, "It stops … I wait", 0) is None, "an ellipsis stands for no more than a few sentences"


@pytest.mark.parametrize(
    ("text", "claimed", "turn", "found"),
    [
        ("List<int> is\nempty.", 0, 0, "List<int> is empty."),
        ("List\\u003cint\\u003e", 0, 0, "List<int>"),
        ('Print \\"x', 0, 1, 'Print "x'),
        ('"x\\n"', 0, 1, '"x\\n"'),
        *[("Thanks!", claimed, turn, "Thanks!") for claimed, turn in ((1, 1), (2, 2), (0, 1), (9, 2), (-5, 1))],
    ],
)
def test_white_space_copied_escapes_and_a_wrong_turn_are_set_right(
    text: str, claimed: int, turn: int, found: str
) -> None:
    quote = located(TALK, text, claimed)
    assert quote is not None
    assert (quote.turn, quote.text) == (turn, found)


@settings(deadline=None)
@given(st.text(), st.integers(-3, 9))
def test_no_text_whatever_breaks_the_check(text: str, turn: int) -> None:
    quote = located(TALK, text, turn)
    assert quote is None or 0 <= quote.turn < 3
    assert isinstance(unescaped(text), str)
