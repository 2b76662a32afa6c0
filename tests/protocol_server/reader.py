"""A model that reads: what somebody who understood pollex's prompts would answer.

It knows the truth of canaries, likes conversations in which the user says thanks, and tells rubrics
of satisfaction by the word `glad`, which it puts into those that it writes. A twentieth of its
answers are slips, always the same ones.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

AGREE = 4
DISAGREE = 0

_ITEM = re.compile(r'^(\d+)\. (".*")$', re.MULTILINE)
_USER = re.compile(r'^\{"i":\d+,"role":"user","text":(".*")\},?$', re.MULTILINE)
_CANARY = re.compile(r'The user uses the word "(\w+)" in their first message\.')


def opinions(messages: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The option for each path in a judge's answer, by index, as {".1.answer": 4}; empty for other prompts."""
    items = _ITEM.findall(str(messages[-1]["content"]))
    if not items or len(messages) < 3:
        return {}
    said = [json.loads(text) for text in _USER.findall(str(messages[1]["content"]))]
    pleased = any("thank" in text.lower() for text in said)
    return {f".{number}.answer": _option(json.loads(text), said, pleased) for number, text in items}


def rubric(messages: Sequence[Mapping[str, Any]], number: int) -> str:
    """A rubric in the spirit of the prompt that asks for one."""
    rules = str(messages[0]["content"]).lower()
    mood = (
        "upset" if "left user dissatisf" in rules or "why user was dissatisf" in rules else "glad"
    )
    return f"The user is {mood} about matter {number:03d} of the work."


def _option(text: str, said: Sequence[str], pleased: bool) -> int:
    if canary := _CANARY.fullmatch(text):
        return AGREE if said and canary[1] in said[0] else DISAGREE
    if text == "The user writes a message.":
        return AGREE
    mood = ("glad" in text) == pleased
    luck = hashlib.sha256(f"{text}{said}".encode("utf-8", "replace")).digest()
    if luck[0] < 13:
        mood = not mood
    return luck[1] % 2 + (3 if mood else 0)
