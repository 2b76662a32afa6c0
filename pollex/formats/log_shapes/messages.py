"""A row a conversation, the turns as OpenAI writes them."""

from __future__ import annotations

from collections.abc import Mapping

from pollex.errors import BadInput
from pollex.formats.log_shapes.payloads import answer_in, system_of
from pollex.formats.log_shapes.shape import Draft, Fields, Reader
from pollex.formats.log_shapes.turns import is_list_of_turns, turns_of

NAMES = ("messages", "turns", "dialogue", "dialog", "chat", "transcript", "conversation")


def read_field(fields: Fields, name: str) -> Draft:
    """Read the turns from one field.

    Raises:
        BadInput: The field is missing or its turns can't be read.
    """
    top, _, path = name.partition(".")
    if name not in fields and path and isinstance(inner := fields.get(top), Mapping):
        inside = read_field(inner, path)
        return Draft(inside.turns, {**fields, top: inside.rest})
    if name not in fields:
        raise BadInput(
            f"the row has no field {name!r}", remedy="name the field with the turns", option="messages_field"
        )
    return Draft(turns_of(fields[name]), {key: value for key, value in fields.items() if key != name})


def _candidates(fields: Fields) -> list[str]:
    """List fields that hold turns; null fields count if there is no other."""
    named = [name for name in NAMES if name in fields]
    return [name for name in named if is_list_of_turns(fields[name])] or [n for n in named if fields[n] is None]


def _read(fields: Fields) -> Draft:
    candidates = _candidates(fields)
    if len(candidates) > 1:
        both = " and ".join(candidates)
        raise BadInput(f"turns may be in {both}", remedy="say which", option={"messages_field": candidates[0]})
    draft = with_answer(read_field(fields, candidates[0]))
    if any(turn.role == "system" for turn in draft.turns) or not _is_prompt(fields.get("system")):
        return draft
    return Draft((*system_of(fields), *draft.turns), {k: v for k, v in draft.rest.items() if k != "system"})


def with_answer(draft: Draft) -> Draft:
    """Add the answer that stands beside the messages that led to it."""
    found = answer_in(draft.rest) if draft.turns and draft.turns[-1].role != "assistant" else None
    if found is None:
        return draft
    name, turns = found
    return Draft(draft.turns + turns, {key: value for key, value in draft.rest.items() if key != name})


def _is_prompt(system: object) -> bool:
    """Return whether the field is the text of a system prompt, and not a name."""
    return isinstance(system, list) or (isinstance(system, str) and " " in system.strip())


READER = Reader(
    name="messages",
    shape='a row a conversation, "messages": [{"role": "user", "content": "…"}, …]',
    recognises=lambda fields: bool(_candidates(fields)),
    read=_read,
)
