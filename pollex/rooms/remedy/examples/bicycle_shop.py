"""The bicycle shop behind bikes.jsonl: its calendar, as each conversation tells it, for the prompt of a remedy.

pollex.remedy("bikes.jsonl", …, prompt="bikes_prompt.md",
render=pollex.rooms.remedy.examples.bicycle_shop.fill_calendar)
"""

import random
import re
from typing import Any

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
TIMES_OF_DAY = (
    "8:30 am",
    "9 am",
    "10 am",
    "11:30 am",
    "1 pm",
    "2 pm",
    "3:30 pm",
    "4 pm",
    "5 pm",
    "6 pm",
)
TIME_PATTERN = re.compile(rf"\b({'|'.join(TIMES_OF_DAY)})\b")
REFUSAL_PATTERN = re.compile(r"can't|couldn't|could not|unable|wasn't able")
ALTERNATIVE_PATTERN = re.compile(r"another time|different (day|time)")


def fill_calendar(prompt: str, conversation: object) -> str:
    """Fill the place `{{calendar}}` of a prompt."""
    return prompt.replace("{{calendar}}", list_free_times(conversation))


def list_free_times(conversation: Any) -> str:
    """Write the free times by day: those that were booked or named; none where the assistant could only say no."""
    # drawn by the text, so that a conversation always has the same calendar
    rng = random.Random(conversation.text_hash)
    # three free times a day, until the conversation says otherwise
    free = {day: set(rng.sample(TIMES_OF_DAY, 3)) for day in DAY_NAMES}
    for turn in conversation.turns:
        # only what the assistant says of a day tells of the calendar
        day = next((day for day in DAY_NAMES if day in turn.content), None)
        if turn.role != "assistant" or day is None:
            continue
        times = set(TIME_PATTERN.findall(turn.content))
        # refused: the first time is taken; others are free if it offered another time
        if REFUSAL_PATTERN.search(turn.content):
            booked = TIME_PATTERN.findall(turn.content)[:1]
            others = (
                rng.sample(sorted(set(TIMES_OF_DAY) - set(booked)), 2)
                if ALTERNATIVE_PATTERN.search(turn.content)
                else ()
            )
            free[day] = times - set(booked) or set(others)
        else:
            free[day] |= times

    return "\n".join(
        f"- {day}: {', '.join(t for t in TIMES_OF_DAY if t in free[day]) or 'full'}"
        for day in DAY_NAMES
    )
