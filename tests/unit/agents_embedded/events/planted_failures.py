"""A log of an agent with four tools: a call fails in every third conversation, and the reply doesn't say so."""

import json
import random

from pollex.conversations.conversation import Conversation, Label, ToolCall, ToolResult, Turn

TOOLS = ("book_train", "reserve_table", "send_mail", "rent_bike")
FAILURES = (
    '{"statusCode": 503}',
    "TimeoutError: no answer",
    '{"ok": false}',
    '{"meldung": "fehlgeschlagen"}',
)


def failing_log(count: int = 90, seed: int = 0) -> list[Conversation]:
    rng = random.Random(seed)
    return [planted(rng, row) for row in range(count)]


def planted(rng: random.Random, row: int) -> Conversation:
    tool = rng.choice(TOOLS)
    fails = row % 3 == 0
    call = ToolCall(name=tool, arguments=json.dumps({"row": row}), id=str(row))
    result = rng.choice(FAILURES) if fails else f"ok, {row}"
    turns = (
        Turn(role="user", content=f"Please take care of {row} for me."),
        Turn(role="assistant", content=call.mark, calls=(call,)),
        Turn(role="tool", content=result, result=ToolResult(id=str(row))),
        Turn(role="assistant", content=f"That is settled, {row} is ready for you."),
        Turn(role="user", content="Okay."),
    )
    up = rng.random() < (0.1 if fails else 0.8)
    return Conversation(
        id=f"f{row:03}", turns=turns, label=Label.POSITIVE if up else Label.NEGATIVE
    )
