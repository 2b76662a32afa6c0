"""A row a request and its response, or a question and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pollex.conversations.conversation import Turn
from pollex.errors import BadInput
from pollex.formats.fields import OWNER_NAMES
from pollex.formats.log_shapes import messages, turn_table
from pollex.formats.log_shapes.payloads import REPLIES, answer_in, asked, opened, system_of
from pollex.formats.log_shapes.shape import Draft, Fields, Reader
from pollex.formats.log_shapes.turns import turns_of

QUESTIONS = (
    "request",
    "full_request",
    "prompt",
    "question",
    "query",
    "instruction",
    "user_input",
    "user_message",
    "input",
)
OWNERS = frozenset(OWNER_NAMES)
TRACES = frozenset(("trace_id", "span_id", "trace", "spans", "run_id", "metadata.span_kind"))
"""Fields of traces, whose sides need more than these two fields to be read."""


def _question(fields: Fields) -> str | None:
    return next((name for name in QUESTIONS if fields.get(name) not in (None, "", [], {})), None)


def is_exchange(fields: Fields) -> bool:
    """Return whether a row has a question and an answer, and neither a list of messages nor a turn."""
    if _question(fields) is None or not any(name in fields for name in REPLIES) or fields.keys() & TRACES:
        return False
    return not any(reader.recognises(fields) for reader in (messages.READER, turn_table.READER))


def _read(fields: Fields) -> Draft:
    name = _question(fields) or ""
    value = opened(fields[name])
    if name == "instruction" and isinstance(fields.get("input"), str):
        value = "\n".join(filter(None, [str(value), fields["input"]]))
    side, answer = asked(value), answer_in(fields)
    if side is None or answer is None:
        lacking = name if side is None else "the answer"
        raise BadInput(f"{lacking} can't be read as words", remedy="give both what was asked and what was answered")
    before = system_of(value) if isinstance(value, Mapping) else ()
    turns = (*system_of(fields), *before, *_earlier(fields.get("history")), *side.turns)
    told = {turn for turn in turns if turn.role == "system"}
    kept = [turn for n, turn in enumerate(turns) if turn not in told or turn not in turns[:n]]
    used = (name, answer[0], "history", "instruction", "input", "system")
    rest = {key: inner for key, inner in fields.items() if key not in used}
    return Draft((*kept, *answer[1]), rest, at=turn_table.time_of(fields))


def _earlier(history: object) -> tuple[Turn, ...]:
    """Read earlier exchanges: pairs of a question and an answer, or messages."""
    found: Any = opened(history)
    if not isinstance(found, list) or not found:
        return ()
    if all(isinstance(pair, list) and len(pair) == 2 for pair in found):
        roles = ("user", "assistant")
        found = [{"role": roles[n], "content": said} for pair in found for n, said in enumerate(pair) if said]
    return turns_of(found)


READER = Reader(
    name="request and response",
    shape='a row an exchange, "prompt": "…", "response": "…", also as requests and responses of an interface',
    recognises=lambda fields: is_exchange(fields) and not fields.keys() & OWNERS,
    read=_read,
)
