"""A reply in which nobody sees a character is none, whoever gave it."""

import pytest

from pollex.rooms.remedy.agents.assistant import (
    AssistantReply,
    CallableAssistant,
    NoReply,
    ReplyRequest,
    convert_reply,
)
from pollex.text import is_visible

UNSEEN = [
    "",
    " \n",
    "\u200b\u200b \u00a0",
    "\u2060\ufeff\u00ad",
    "\x00\x1b",
    "\u3164\u2800",
    "\ufe0f",
]
THOUGHTS = [
    "<think>The user wants a time. How about",
    "<think>Well.</think>",
    "<think>x</think>\u200b",
]


@pytest.mark.parametrize("text", [*UNSEEN, *THOUGHTS])
async def test_a_functions_reply_without_a_visible_character_is_none(text: str) -> None:
    request = ReplyRequest(key="k", item="c", system="", messages=[], seed=0)
    for reply in (text, AssistantReply(text)):
        outcome = await CallableAssistant(lambda _messages, _system, r=reply: r).reply(request)
        assert isinstance(outcome, NoReply)


@pytest.mark.parametrize("text", UNSEEN)
def test_nothing_is_visible_in_them(text: str) -> None:
    assert not is_visible(text)


@pytest.mark.parametrize("text", ["Hi", ".", "สวัสดี", "👍🏽", "e\u0301", "\u200bok"])
def test_what_people_see_is_a_reply(text: str) -> None:
    assert convert_reply(text) == AssistantReply(text)


def test_thoughts_before_a_reply_are_no_part_of_it() -> None:
    assert convert_reply("<think>Well.</think> At nine?") == AssistantReply("At nine?")
