"""A row a conversation, the turns as ShareGPT writes them."""

from __future__ import annotations

from pollex.formats.log_shapes.messages import read_field
from pollex.formats.log_shapes.shape import Reader
from pollex.formats.log_shapes.turns import is_list_of_turns

READER = Reader(
    name="ShareGPT",
    shape='a row a conversation, "conversations": [{"from": "human", "value": "…"}, …]',
    recognises=lambda fields: is_list_of_turns(fields.get("conversations")),
    read=lambda fields: read_field(fields, "conversations"),
)
