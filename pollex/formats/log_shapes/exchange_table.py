"""A table of exchanges: a row a question and its answer, rows of one conversation share its id."""

from __future__ import annotations

from dataclasses import replace

from pollex.formats.log_shapes import exchanges

READER = replace(
    exchanges.READER,
    name="table of exchanges",
    shape="a row an exchange: conversation_id, prompt, response",
    recognises=lambda fields: exchanges.is_exchange(fields) and bool(fields.keys() & exchanges.OWNERS),
    row_is_turn=True,
)
