"""Gemini: requests with their contents."""

from __future__ import annotations

from collections.abc import Mapping

from pollex.formats.log_shapes.messages import with_answer
from pollex.formats.log_shapes.payloads import system_of
from pollex.formats.log_shapes.shape import Draft, Fields, Reader
from pollex.formats.log_shapes.turns import turns_of


def _recognises(fields: Fields) -> bool:
    contents = fields.get("contents")
    first = contents[0] if isinstance(contents, list) and contents else None
    return isinstance(first, Mapping) and "parts" in first


def _read(fields: Fields) -> Draft:
    turns = turns_of([{"role": "user", **one} if isinstance(one, Mapping) else one for one in fields["contents"]])
    rest = {name: value for name, value in fields.items() if name not in ("contents", "systemInstruction")}
    return with_answer(Draft((*system_of(fields), *turns), rest))


READER = Reader(
    name="Gemini",
    shape='a row a conversation, "contents": [{"role": "user", "parts": [{"text": "…"}]}, …]',
    recognises=_recognises,
    read=_read,
)
