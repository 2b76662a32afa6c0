"""Columns of any name: which part of a conversation each one holds, and whose turns the names of roles mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pollex.conversations.logs import BadRow
from pollex.errors import BadInput, WrongUse
from pollex.formats.assembly.log_parts import is_time
from pollex.formats.fields import ReadOptions, look_up
from pollex.formats.json_rows import LogRow
from pollex.formats.log_shapes.exports import has
from pollex.formats.log_shapes.turns import ROLE_NAMES, ROLES
from pollex.text import parse_json

OF_TURNS = {"role": "role", "text": "content"}
USUAL = {
    **OF_TURNS,
    "conversation": "conversation_id",
    "turn": "turn",
    "time": "timestamp",
    "user": "prompt",
    "assistant": "response",
    "prompt": "prompt_version",
}
"""Parts whose column is read as if it had this name."""
FIELDS = {
    "label": "label_field",
    "comment": "comment_field",
    "judge": "judge_field",
    "group": "group_field",
    "messages": "messages_field",
}
"""Parts whose column an option of its own may name, too."""
PARTS = ("conversation", "role", "text", "turn", "time", "messages", "user", "assistant", *list(FIELDS)[:-1], "prompt")

MOST_COLUMNS = 100
"""Columns that an error may name."""

Pairs = tuple[tuple[str, str], ...]


def pairs(given: str | Mapping[str, Any] | Pairs) -> Pairs:
    """Return what was given as `part=column,part=column`, a table or pairs; several values of a part follow each other.

    Raises:
        ValueError: A text of another form.
    """
    if isinstance(given, Mapping):
        several = {part: [value] if isinstance(value, str) else value for part, value in given.items()}
        return tuple((part, str(value)) for part, values in several.items() for value in values)
    if not isinstance(given, str):
        return tuple(given)
    cut = [one.partition("=") for one in given.split(",") if one.strip()]
    if wrong := [part for part, equals, name in cut if not (equals and part.strip() and name.strip())]:
        raise ValueError(f"{wrong[0]!r} stands alone: write NAME=VALUE, with commas between several")
    return tuple((part.strip(), name.strip()) for part, _, name in cut)


def pairs_as_typed(given: Iterable[tuple[str, str]]) -> str:
    """Return pairs as somebody types them."""
    return ",".join(f"{part}={name}" for part, name in given)


@dataclass
class Mapper:
    """Gives rows the names that readers know.

    Attributes:
        seen: Mapped columns that a row had.
        spoken: Mapped names of roles that a turn had.
        there: All columns, in the order of the first rows.
        times: The first values of the time that can be read, and that can't.
    """

    columns: dict[str, str]
    roles: dict[str, str]
    seen: set[str] = field(default_factory=set)
    spoken: set[str] = field(default_factory=set)
    there: dict[str, None] = field(default_factory=dict)
    times: dict[bool, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, options: ReadOptions) -> Mapper:
        """Check what was asked for.

        Raises:
            WrongUse: An unknown part or role, two columns for one part, or one column for two parts.
        """
        columns = _once(options.columns)
        for part, option in FIELDS.items():
            if (other := getattr(options, option)) and other != columns.get(part, other):
                _refuse_two(part, columns[part], other, {option: columns[part]})
        roles = {_folded(spelling): role for role, spelling in options.roles}
        usual = ((role if role in ROLES.values() else "user", said) for role, said in reversed(options.roles))
        first = {_folded(said): (role, said) for role, said in usual}
        example = {"roles": pairs_as_typed(reversed(first.values()))}
        for role, spelling in options.roles:
            if role not in ROLES.values():
                known = "user, assistant, system or tool"
                raise WrongUse(f"no role is called {role!r:.40}", remedy=f"give {known}", option=example)
            if roles[_folded(spelling)] != role:
                raise WrongUse(f"{spelling!r:.40} is given two roles", remedy="give it one", option=example)
        return cls(columns, roles)

    def options(self, options: ReadOptions) -> ReadOptions:
        """Return options that name the mapped columns."""
        named: dict[str, Any] = {option: self.columns[part] for part, option in FIELDS.items() if part in self.columns}
        if "conversation" in self.columns:
            named["id_field"] = USUAL["conversation"]
        return replace(options, **named) if named else options

    def rows(self, rows: Iterable[LogRow | BadRow]) -> Iterator[LogRow | BadRow]:
        """Yield rows under the usual names."""
        if not self.columns and not self.roles:
            yield from rows
            return
        for row in rows:
            yield replace(row, fields=self.renamed(row.fields)) if isinstance(row, LogRow) else row

    def renamed(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row under the usual names; a column in the way of one of these stays under another name."""
        if len(self.there) < MOST_COLUMNS:
            self.there |= dict.fromkeys(fields)
        nested = self.columns.get("messages")
        found = self._moved(fields, (*(part for part in USUAL if not nested or part not in OF_TURNS), *FIELDS))
        if "time" in self.seen and (said := found.get(USUAL["time"])) not in (None, ""):
            self.times.setdefault(is_time(said), said)
        found = self._spoken(found)
        lists = [nested] if nested in found else list(found) if self.roles else []
        return found | {name: self._turns(found[name]) for name in lists if name}

    def _moved(self, fields: Mapping[str, Any], parts: Iterable[str]) -> dict[str, Any]:
        there = {part: name for part in parts if (name := self.columns.get(part)) and has(fields, name)}
        self.seen |= there.keys()
        moved = {USUAL[part]: look_up(fields, name) for part, name in there.items() if part in USUAL}
        taken = {name for part, name in there.items() if part in USUAL}
        rest = {f"{name} (column)" if name in moved else name: v for name, v in fields.items() if name not in taken}
        return moved | rest

    def _turns(self, value: Any) -> Any:
        if isinstance(value, str) and value.lstrip()[:1] == "[":
            with suppress(ValueError):
                value = parse_json(value)
        if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
            return value
        return [self._spoken(self._moved(one, OF_TURNS) if "messages" in self.columns else one) for one in value]

    def _spoken(self, turn: Mapping[str, Any]) -> dict[str, Any]:
        names = [name for name in ROLE_NAMES if name in turn] if self.roles else []
        return {**turn, **{name: self._role(turn[name]) for name in names}}

    def _role(self, said: Any) -> Any:
        if not isinstance(said, str) or (role := self.roles.get(_folded(said))) is None:
            return said
        self.spoken.add(_folded(said))
        return role

    def check(self, where: str, *, needed: bool = True) -> None:
        """Require that all that was mapped is there.

        Args:
            needed: Also labels and what stands with them, and each name of a role: new conversations may have none.

        Raises:
            BadInput: A column or a role is in no row, or nothing in the column of times is one.
        """
        for part, name in self.columns.items():
            if part not in self.seen and (needed or part in USUAL):
                near = next((one for one in self.there if _folded(one) == _folded(name)), None)
                remedy = "give " + (near or f"one of {', '.join(self.there)}")
                option = {"columns": pairs_as_typed((self.columns | {part: near or "COLUMN"}).items())}
                raise BadInput(
                    f"no row has the column {name!r:.60} of {part}", where=where, remedy=remedy, option=option
                )
        if self.times.keys() == {False}:
            remedy = "write times as 2026-12-31 14:00, or leave time out of"
            raise BadInput(f"{self.times[False]!r:.40} is no time", where=where, remedy=remedy, option="columns")
        if needed and (silent := [name for name in self.roles if name not in self.spoken]):
            what = f"no turn is by {silent[0]!r:.40}"
            raise BadInput(what, where=where, remedy="check its spelling, or leave it out of", option="roles")


def _once(given: Pairs) -> dict[str, str]:
    columns: dict[str, str] = {}
    for part, name in given:
        if part not in PARTS:
            raise WrongUse(f"no part is called {part!r:.40}", remedy=f"parts are {', '.join(PARTS)}", option="columns")
        without = {"columns": pairs_as_typed(pair for pair in given if pair != (part, name))}
        if columns.setdefault(part, name) != name:
            _refuse_two(part, columns[part], name, without)
        if other := next((each for each, one in columns.items() if one == name and each != part), None):
            what = f"the column {name!r:.60} is given as {other} and as {part}"
            raise WrongUse(what, remedy="give it one part", option=without)
    return columns


def _refuse_two(part: str, one: str, other: str, option: Mapping[str, object]) -> None:
    what = f"two columns are given for {part}: {one!r:.60} and {other!r:.60}"
    raise WrongUse(what, remedy="give one", option=option)


def _folded(text: str) -> str:
    return text.strip().casefold()
