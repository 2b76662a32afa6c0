"""Turns without a word are told as such."""

from pollex.conversations.conversation import Turn
from pollex.reports.transcript import mark_turns


def test_an_empty_result_of_a_tool_is_said_to_be_empty() -> None:
    turns = [Turn(role="tool", content=" "), Turn(role="assistant", content="")]
    told = [turn.parts[0].text for turn in mark_turns(turns, {})]
    assert told == ["(empty result)", "(empty)"]
