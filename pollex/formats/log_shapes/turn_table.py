"""A flat table: a row a turn, rows of one conversation share its id."""

from __future__ import annotations

import math

from pollex.conversations.conversation import Turn
from pollex.errors import BadInput
from pollex.formats.assembly.pieces import moment
from pollex.formats.log_shapes.parts import text_of
from pollex.formats.log_shapes.shape import Draft, Fields, Reader
from pollex.formats.log_shapes.turns import ROLE_NAMES, TEXT_NAMES, role_of, turns_in

POSITION_NAMES = ("turn", "turn_id", "turn_index", "turn_number", "index", "position", "seq", "order")
CALL_NAMES = ("tool_calls", "tool_call_id")
TIME_NAMES = ("timestamp", "created_at", "createdAt", "created", "sent_at", "datetime", "time", "date")


def _named(fields: Fields, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in fields), None)


def _recognises(fields: Fields) -> bool:
    text = _named(fields, TEXT_NAMES)
    return _named(fields, ROLE_NAMES) is not None and text is not None and not isinstance(fields[text], dict)


def _position(name: str, value: object) -> float:
    try:
        position = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        position = math.nan
    if not math.isfinite(position):
        raise BadInput(f"{name} is {value!r:.40}, not a number", remedy="number the turns in the order they were said")
    return position


def _read(fields: Fields) -> Draft:
    role, text, position = (_named(fields, names) for names in (ROLE_NAMES, TEXT_NAMES, POSITION_NAMES))
    if role is None or text is None:
        raise BadInput("the row has no role or no text", remedy="give every row of the table both")
    calls = {name: fields[name] for name in CALL_NAMES if fields.get(name) not in (None, "")}
    said = {"role": fields[role], "content": fields[text]}
    return Draft(
        turns=turns_in({**said, **calls})
        if calls
        else (Turn(role=role_of(fields[role]), content=text_of(fields[text])),),
        rest={key: value for key, value in fields.items() if key not in (role, text, position, *CALL_NAMES)},
        position=None if position is None else _position(position, fields[position]),
        at=time_of(fields),
    )


def time_of(fields: Fields) -> float | None:
    """Return when a row's turn was said, if a usual column has it."""
    return next((moment(fields[name]) for name in TIME_NAMES if name in fields), None)


READER = Reader(
    name="flat table",
    shape="a row a turn: conversation_id, turn, role, text",
    recognises=_recognises,
    read=_read,
    row_is_turn=True,
)
