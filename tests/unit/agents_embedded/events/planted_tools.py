"""A log of an agent with a tool: thumbs depend on how it calls it, and on no word that anybody says."""

import json
import random

from pollex.conversations.conversation import Conversation, Label, ToolCall, ToolResult, Turn

TOWNS = ("Leeds", "Bristol", "York", "Bath", "Derby", "Exeter")


def tool_log(each: int = 60, seed: int = 0) -> list[Conversation]:
    rng = random.Random(seed)
    return [planted(rng, row, row % 2 == 0) for row in range(2 * each)]


def planted(rng: random.Random, row: int, up: bool) -> Conversation:
    """One conversation: with a thumb down the call is made twice, or for another town than was said."""
    town, other = rng.sample(TOWNS, 2)
    hour = rng.randint(2, 9)
    slip = "" if up and rng.random() < 0.95 else rng.choice(("again", "wrong"))
    first = called("trains", str(row), to=other if slip == "wrong" else town, hour=hour)
    turns = [Turn(role="user", content=f"I need a train to {town} at {hour} am."), *first]
    turns += called("trains", f"{row}b", hour=hour, to=town) if slip == "again" else []
    turns += [
        Turn(role="assistant", content=f"There is a train at {hour}:15."),
        Turn(role="user", content="Okay."),
    ]
    return Conversation(
        id=f"t{row:03}", turns=tuple(turns), label=Label.POSITIVE if up else Label.NEGATIVE
    )


def called(name: str, id_: str, **arguments: object) -> list[Turn]:
    call = ToolCall(name=name, arguments=json.dumps(arguments), id=id_)
    found = Turn(role="tool", content=f"leaves {arguments['hour']}:15", result=ToolResult(id=id_))
    return [Turn(role="assistant", content=call.mark, calls=(call,)), found]
