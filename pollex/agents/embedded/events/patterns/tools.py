"""Agents with tools: calls that fail, are repeated, or whose result is ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pollex.agents.embedded.events.patterns.pattern import Exchange, Firing, Pattern, Span
from pollex.agents.embedded.events.sentences import lowered

PATTERNS = (
    Pattern(
        "tool_fails_hidden",
        "assistant",
        -1,
        "A call of the tool {detail} fails, and the assistant's reply doesn't say so.",
        (),
    ),
    Pattern(
        "tool_fails_told",
        "assistant",
        0,
        "A call of the tool {detail} fails, and the assistant tells the user.",
        ("fails",),
        proven=False,
    ),
    Pattern(
        "tool_repeated",
        "assistant",
        -1,
        "The assistant calls the tool {detail} three times or more for one request.",
        (),
    ),
    Pattern(
        "tool_ignored",
        "assistant",
        -1,
        "The tool {detail} returns a result, and the assistant's reply takes up nothing of it.",
        (),
    ),
)

ERROR = re.compile(
    r"\b(?:error|exception|failed|failure|timed? ?out|traceback|not found|forbidden|unauthorized|bad "
    r"request|service unavailable)\b|\b(?:status|code)\W{1,4}[45]\d\d\b"
)
FINE = re.compile(r"\b(?:no errors?|0 errors|errors?\W{1,4}(?:null|none|0|\[\]|false)|without errors?)\b")
TOLD = ("fails", "apologizes", "none_found", "doesnt_know", "unavailable", "refuses", "says_no")
VALUE = re.compile(r"[A-Za-z]{4,}|\d[\d.,:]*\d|\d")
REPEATED = 3


def failing(result: str) -> bool:
    low = result[:2000].lower()
    return bool(ERROR.search(low)) and not FINE.search(low)


def find(x: Exchange) -> Iterator[Firing]:
    """Yield tool calls of one exchange."""
    if not x.here.tools and not x.here.calls:
        return
    detail = f"`{x.here.calls[-1]}`" if x.here.calls else ""
    for name in dict.fromkeys(x.here.calls):
        if x.here.calls.count(name) >= REPEATED and x.here.sentences:
            yield x.fire_at("tool_repeated", x.here, x.here.sentences[-1:], 0.95, detail=f"`{name}`")
    if not x.here.tools or not x.here.sentences or not detail:
        return
    turn, result = x.here.tools[-1]
    mark = (Span(turn, 0, min(len(result), 120)),)
    if failing(result):
        name = "tool_fails_told" if x.here.has(*TOLD) or ERROR.search(x.here.low) else "tool_fails_hidden"
        yield x.fire_at(name, x.here, x.here.sentences[-2:], 0.85, mark, detail)
    elif x.here.turns[-1] > turn and ignored(result, x.here.text):
        yield x.fire_at("tool_ignored", x.here, x.here.sentences[-2:], 0.8, mark, detail)


def ignored(result: str, reply: str) -> bool:
    """Return whether a reply shares no value with a result that has at least three."""
    given = set(VALUE.findall(lowered(result)))
    return len(given) >= 3 and not given & set(VALUE.findall(lowered(reply)))
