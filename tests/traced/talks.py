"""Three conversations, and their model calls, as every set of exports holds them.

"ann" has words beside two parallel calls, and a thumb up; "bob" a system prompt, an image, and a thumb down that came
after one up; "cat" words beside a call in its last exchange, and the score of a model's, which is no thumb.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]
Files = Mapping[str, Any]
"""By name what a file holds: rows for `.jsonl`, `.csv` and `.parquet`, any value for `.json`."""

IMAGE = "data:image/png;base64,iVBORw0KGgo="


def _call(number: str) -> Json:
    arguments = json.dumps({"number": number})
    return {"id": f"call-{number}", "type": "function", "function": {"name": "look_up", "arguments": arguments}}


CALLS = [_call("A-1"), _call("A-2")]
_RESULTS: list[Json] = [
    {"role": "tool", "tool_call_id": "call-A-1", "content": "shipped"},
    {"role": "tool", "tool_call_id": "call-A-2", "content": "packed"},
]
TALKS: dict[str, list[Json]] = {
    "ann": [
        {"role": "user", "content": "Where are my orders A-1 and A-2?"},
        {"role": "assistant", "content": "Let me look both up.", "tool_calls": CALLS},
        *_RESULTS,
        {"role": "assistant", "content": "A-1 is on its way, A-2 waits."},
        {"role": "user", "content": "Thanks!"},
        {"role": "assistant", "content": "You're welcome."},
    ],
    "bob": [
        {"role": "system", "content": "You sell bicycles."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Which part is this?"},
                {"type": "image_url", "image_url": {"url": IMAGE}},
            ],
        },
        {"role": "assistant", "content": "A chain."},
        {"role": "user", "content": "No, look again."},
        {"role": "assistant", "content": "I can't tell."},
    ],
    "cat": [
        {"role": "user", "content": "When do you open?"},
        {"role": "assistant", "content": "At nine."},
        {"role": "user", "content": "And on Sunday?"},
        {"role": "assistant", "content": "I'll see.", "tool_calls": [_call("Sunday")]},
        {"role": "tool", "tool_call_id": "call-Sunday", "content": '{"open": false}'},
        {"role": "assistant", "content": "We are closed."},
    ],
}
LABELS = {"ann": "positive", "bob": "negative", "cat": "none"}
COMMENTS = {"ann": "Quick.", "bob": "Wrong part."}


class Asked(NamedTuple):
    """One exchange: what the user asked, and all that came back.

    Attributes:
        history: The messages before, with the system's.
        steps: Messages between question and answer: calls of tools, and what these answered.
    """

    talk: str
    number: int
    history: list[Json]
    question: Json
    steps: list[Json]
    answer: Json

    @property
    def id(self) -> str:
        return f"{self.talk}-{self.number}"

    @property
    def trace(self) -> str:
        """32 hexadecimal digits."""
        return hexed(self.id, 32)

    @property
    def words(self) -> str:
        """The question without its image."""
        content = self.question["content"]
        return content if isinstance(content, str) else content[0]["text"]

    @property
    def at(self) -> int:
        """Seconds since 1970."""
        return 1790000000 + 60 * self.number

    @property
    def time(self) -> str:
        return f"2026-09-21T13:{33 + self.number}:20Z"

    @property
    def models(self) -> list[tuple[list[Json], Json]]:
        """What went into each call of the model, and what came out."""
        return self.models_after(self.history)

    def models_after(self, history: list[Json]) -> list[tuple[list[Json], Json]]:
        whole = [*history, self.question, *self.steps, self.answer]
        first = len(history) + 1
        return [
            (whole[:place], whole[place]) for place in range(first, len(whole)) if whole[place]["role"] == "assistant"
        ]

    @property
    def finals(self) -> list[Json]:
        """The history of an application that keeps no calls of tools."""
        return [m for m in self.history if m["role"] != "tool" and "tool_calls" not in m]

    @property
    def is_last(self) -> bool:
        return TALKS[self.talk][-1] is self.answer


def pythonic(rows: list[Json]) -> list[Json]:
    """Rows with objects as Python writes them, as a data frame does in a CSV file."""
    return [{name: repr(v) if isinstance(v, dict | list) else v for name, v in row.items()} for row in rows]


def hexed(name: str, digits: int) -> str:
    return name.encode().hex().rjust(digits, "0")[-digits:]


def exchanges() -> list[Asked]:
    """All exchanges of all conversations, in order."""
    found = []
    for talk, messages in TALKS.items():
        starts = [place for place, message in enumerate(messages) if message["role"] == "user"]
        for number, begin in enumerate(starts):
            end = ([*starts, len(messages)])[number + 1]
            found.append(
                Asked(talk, number, messages[:begin], messages[begin], messages[begin + 1 : end - 1], messages[end - 1])
            )
    return found


def expected(talk: str) -> list[tuple[str, str]]:
    """The turns without the system's, words as they are and marks in brackets."""
    return [(message["role"], _written(message)) for message in TALKS[talk] if message["role"] != "system"]


def _written(message: Json) -> str:
    content = message["content"]
    words = content if isinstance(content, str) else f"{content[0]['text']}\n[image]"
    return "\n".join([words, *(f"[tool call: {call['function']['name']}]" for call in message.get("tool_calls", ()))])
