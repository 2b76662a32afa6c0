"""The export formats of tools, as `tools.toml` lists them; a module that reads one is loaded with its first row."""

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pollex.formats.assembly.log_parts import (
    Facts,
    LeftOut,
    LogPart,
    Message,
    ToolScore,
    parse_moment,
)
from pollex.formats.labels import as_number
from pollex.formats.log_shapes.exports import (
    Fields,
    WrongFile,
    get,
    has,
    id_as_text,
    is_true,
    keep_filled_facts,
    list_objects,
    require_text,
    unwrap,
)
from pollex.formats.log_shapes.payloads import parse
from pollex.formats.log_shapes.readers import READERS
from pollex.formats.log_shapes.turns import ROLE_NAMES, TEXT_NAMES, marks_of_files, turns_in

NEAR = 0.6
"""The share of a format's keys from which on a row that lacks the others is said to look like it."""

Table = Mapping[str, Any]
"""The fields of one kind of part, by what they are."""


@dataclass(frozen=True, slots=True)
class Export:
    """One export format, recognized by its keys; `tools.toml` says what its fields mean."""

    module: str
    name: str
    signs: tuple[tuple[str, ...], ...]
    without: str = ""
    where: str = ""
    more: str = ""
    read_by: str = ""
    tables: tuple[tuple[Callable[[Table, Fields], Iterable[LogPart]], Table], ...] = ()
    refuse: tuple[str, ...] = ()

    @property
    def wordless(self) -> bool:
        """Whether its rows have thumbs or facts alone, and no words."""
        return (
            not self.read_by
            and not self.refuse
            and all(make in (_thumb, _facts) for make, _ in self.tables)
        )

    def recognises(self, fields: Fields) -> bool:
        """Return whether a row has the keys of this format."""
        return self.recognises_rest(
            fields,
            self.signs,
            tuple(self.without.split()),
        )

    def recognises_rest(
        self,
        fields: Fields,
        signs: Iterable[tuple[str, ...]],
        without: tuple[str, ...],
    ) -> bool:
        """Return whether a row has one of some signs, and is otherwise of this format.

        Args:
            signs: What is left of this format's signs where some of their keys are known to be
                there.
            without: What is left of the keys that the row must not have.
        """
        if not any(_all_in(fields, sign) for sign in signs) or any(
            has(fields, key) for key in without
        ):
            return False
        # a condition is a path that must have a value, or the name of a function
        if "." in self.where:
            return any(get(fields, path) is not None for path in self.where.split("|"))
        return not self.where or bool(self._function(self.where)(fields))

    def read(self, fields: Fields) -> Iterable[LogPart]:
        """Return the parts of a row.

        Raises:
            BadInput: It can't be read.
            WrongFile: The whole file can't be used.
        """
        if self.refuse:
            raise WrongFile(self.refuse[0], hint=self.refuse[1])

        read_parts: Iterable[LogPart]
        if self.read_by:
            read_parts = self._function(self.read_by)(fields)
        else:
            read_parts = ()

        rows = ((make, table, row) for make, table in self.tables for row in _items(table, fields))
        return chain(
            read_parts,
            (part for make, table, row in rows for part in make(table, row)),
        )

    def _function(self, name: str) -> Callable[[Fields], Any]:
        return _function_in(self.module, name)

    def missing(self, fields: Fields) -> tuple[float, list[str]]:
        """Return the share of a format's keys that a row has, and the missing keys."""
        best = max(
            self.signs,
            key=lambda sign: sum(has(fields, key) for key in sign) / len(sign),
        )
        lacking = [key for key in best if not has(fields, key)]
        return 1 - len(lacking) / len(best), lacking

    def weight(self, fields: Fields) -> int:
        """Return how many keys of the row itself mark it."""
        return max(
            sum("*" not in key for key in sign) for sign in self.signs if _all_in(fields, sign)
        )


@cache
def _function_in(module: str, name: str) -> Callable[[Fields], Any]:
    """Return a function of a module that reads exports, which is loaded with its first row."""
    function: Callable[[Fields], Any] = getattr(
        import_module(f"{__package__}.{module}"),
        name,
    )
    return function


def _all_in(fields: Fields, sign: tuple[str, ...]) -> bool:
    return not sign or all(has(fields, key) for key in sign)


def _items(table: Table, fields: Fields) -> Iterator[Fields]:
    # `named`: an entry for each key of an object; `each`: for each item of a list; ^ is the row
    for name, value in unwrap(get(fields, table["named"])).items() if "named" in table else ():
        yield {"^": fields, "name": name, "value": parse(value)}

    if "each" in table:
        parsed = parse(get(fields, table["each"]))
        for entry in list_objects([parsed] if isinstance(parsed, Mapping) else parsed):
            yield {"^": fields, **entry}
    elif "named" not in table:
        yield fields


def _thumb(table: Table, fields: Fields) -> Iterator[ToolScore]:
    value, comment = (
        _filled(fields, table.get(name, ""))
        for name in ("stars" if "stars" in table else "value", "comment")
    )
    # neither thumb nor comment, or the number that stands for no thumb
    lacking = value is None and (not comment or table.get("valued"))
    if lacking or ("none" in table and as_number(value) == table["none"]):
        return

    # the narrowest target with an id counts
    kinds = [target for target in ("span", "trace", "conversation") if target in table] or [
        "message"
    ]
    targets = []
    for target in kinds:
        if id_ := _id(fields, table[target]):
            targets.append((target, id_))

    if targets:
        yield ToolScore(
            *(*targets[0], value),  # type: ignore[arg-type]
            name=_id(fields, table.get("name", "")) or "",
            source=_id(fields, table.get("source", "")) or "",
            comment=comment,
            tags=_filled(fields, table.get("tags", "")),
            person=_id(fields, table.get("person", "")),
            at=parse_moment(_filled(fields, table.get("at", ""))),
            summary=bool(table.get("summary")),
            rating="stars" in table,
            message=None if targets[0][0] == "message" else _id(fields, table.get("message", "")),
            key=_id(fields, table.get("key", "")),
        )


def _message(table: Table, fields: Fields) -> Iterator[Message | LeftOut]:
    # rows that `when` and `unless` rule out are no messages
    when = ((get(fields, name), value) for name, value in table.get("when", {}).items())
    if is_true(_filled(fields, table.get("unless", ""))) or any(
        actual not in (None, value) for actual, value in when
    ):
        if "apart" in table:
            yield LeftOut(f"{table['apart']} were left out")
        return

    conversation = _id(fields, table["conversation"]) or ""
    key = _id(fields, table.get("key", ""))
    role = _filled(fields, table["role"])
    users = table.get("users")
    agents = table.get("agents")
    # the words, and the marks of files
    words: Any = next(
        (value for name in table["text"].split("|") if (value := _filled(fields, name))),
        None,
    )
    # a message without words leaves its kind
    if "kind" in table and not words:
        words = f"[{_id(fields, table['kind'])}]"

    if isinstance(words, list):
        parts = words
    else:
        parts = [words if isinstance(words, Mapping) else str(words or "").strip()]

    files = (parse(get(fields, name)) for name in table.get("files", "").split("|"))
    content = [*filter(None, parts), *(mark for listed in files for mark in marks_of_files(listed))]
    # calls of tools, and the id of the call that a tool's message answers
    beside: dict[str, Any] = {}
    if calls := list_objects(parse(get(fields, table.get("calls", "")))):
        beside["tool_calls"] = calls
    if answered := _id(fields, table.get("answers", "")):
        beside["tool_call_id"] = answered
    # the role, where the table says who users and agents are
    if users is not None:
        who = str(role).strip().casefold()
        role = None
        if who in users.split():
            role = "user"
        elif "tool_call_id" in beside:
            role = "tool"
        elif agents is None or who in agents.split():
            role = "assistant"

        if role is None and content and who not in table.get("silent", "").split():
            yield LeftOut(
                f"messages by {who!r:.40}, neither the user's nor the assistant's, were left out"
            )

        if role is None or not (content or beside):
            return

    # its place: after its parent in a tree, else by time
    above = _filled(fields, table.get("parent", ""))
    parent = id_as_text(above[-1] if isinstance(above, list) and above else above)
    sent_at = parse_moment(_filled(fields, table.get("at", "")))
    turns = turns_in({"role": role, "content": content, **beside})
    yield Message(
        conversation,
        key,
        turns,
        sent_at,
        parent,
        tree=parent is not None,
    )


def _facts(table: Table, fields: Fields) -> Iterator[Facts]:
    values = {}
    for name, names in table.items():
        if name not in ("conversation", "shown"):
            values[name] = _filled(fields, names)

    read = {
        "user": id_as_text(values.get("user")),
        "metadata": parse(values.get("metadata")),
    }
    yield Facts(
        _id(fields, table["conversation"]) or "",
        keep_filled_facts(**values | read),
        _id(fields, table.get("shown", "")),
    )


def _inner(table: Table, fields: Fields) -> Iterable[LogPart]:
    row = {}
    for name, value in fields.items():
        if name != "^":
            row[name] = value

    return BY_NAME[table["of"]].read(
        row | {name: _filled(fields, n) for name, n in table.get("with", {}).items()}
    )


def _filled(fields: Fields, names: str) -> Any:
    # names with a bar between them are tried in order
    for name in names.split("|") if names else ():
        if name[0] == "=":  # the value itself
            value: Any = name[1:]
        else:
            if name in fields:
                value = fields[name]
            else:
                value = get(fields, name)

        # NaN, which differs from itself, is nothing
        if value is not None and value != "" and value == value:
            return value

    return None


def _id(fields: Fields, names: str) -> str | None:
    # a ! at the end: the row must have the id
    listed = names.removesuffix("!").split("|") if names else ()
    for name in listed:
        if id_ := id_as_text(_filled(fields, name)):
            return id_

    if names.endswith("!"):
        return require_text({}, *(name.removeprefix("^.") for name in listed))
    return None


TABLES: Mapping[str, Callable[[Table, Fields], Iterable[LogPart]]] = {
    "facts": _facts,
    "message": _message,
    "rows": _inner,
    "thumb": _thumb,
}


def _listed() -> Iterator[Export]:
    for module, exports in tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text("utf-8")
    ).items():
        for name, row in exports.items():
            signs = tuple(tuple(keys.split()) for keys in row.pop("keys"))
            # how to make each kind of part; a format may have several tables of a kind
            makers: list[tuple[Callable[[Table, Fields], Iterable[LogPart]], Table]] = []
            for kind, make in TABLES.items():
                tables = row.pop(kind, [])
                if not isinstance(tables, list):
                    tables = [tables]
                makers += [(make, table) for table in tables]

            yield Export(
                module,
                name,
                signs,
                tables=tuple(makers),
                read_by=row.pop("read", ""),
                **row,
            )


EXPORTS = tuple(_listed())
BY_NAME = {export.name: export for export in EXPORTS}


def export_of(fields: Fields) -> Export | None:
    """Return the most specific format whose keys a row has; None if there is none.

    A row that has words is never one of thumbs or facts alone, whatever keys stand beside the
    words.
    """
    # what names alone decide is remembered for all rows of a table
    possible = _possible(frozenset(fields))
    fitting = []
    for candidate in possible:
        if candidate.export.recognises_rest(fields, candidate.signs, candidate.without):
            fitting.append(candidate.export)

    if not fitting:
        return None
    if all(export.wordless for export in fitting) and has_words(fields):
        fitting = [export for export in fitting if not export.wordless]

    return max(fitting, key=lambda export: export.weight(fields), default=None)


LISTS = ("messages", "ShareGPT", "Gemini")
"""Readers that recognise any list, also one of ids."""


def has_words(fields: Fields) -> bool:
    """Return whether a row has what somebody said: a turn, an exchange, or a list of messages under any name."""
    if any(reader.recognises(fields) for reader in READERS if reader.name not in LISTS):
        return True
    return any(_are_messages(value) for value in fields.values())


def _are_messages(value: object) -> bool:
    if not isinstance(value, list | str):
        return False

    if isinstance(value, list) or value.lstrip()[:1] == "[":
        messages = list_objects(value)
    else:
        messages = []

    return bool(messages) and all(_is_message(message) for message in messages[:3])


def _is_message(message: Mapping[str, Any]) -> bool:
    return any(name in message for name in ROLE_NAMES) and any(
        name in message for name in TEXT_NAMES
    )


class Possible(NamedTuple):
    """A format that rows with certain names may have.

    Attributes:
        signs: What is left to be looked for inside their values.
        without: What is left that must not be there.
    """

    export: Export
    signs: tuple[tuple[str, ...], ...]
    without: tuple[str, ...]


@lru_cache(maxsize=256)
def _possible(names: frozenset[str]) -> tuple[Possible, ...]:
    """Return the formats possible for these top-level names; cached for all rows of a table."""
    outer = {*names, "*"}
    possible: list[Possible] = []
    for export in EXPORTS:
        # keys that are names of the row are settled; paths may lead into its values
        left = []
        for sign in export.signs:
            left.append(tuple(key for key in sign if key not in names))

        signs = tuple(
            dict.fromkeys(sign for sign in left if all(_begins_in(key, outer) for key in sign))
        )
        without = tuple(export.without.split())
        if signs and names.isdisjoint(without):
            possible.append(
                Possible(
                    export,
                    signs,
                    tuple(key for key in without if _begins_in(key, outer)),
                )
            )

    return tuple(possible)


def _begins_in(key: str, outer: Collection[str]) -> bool:
    """Return whether a path may lead into one of some fields."""
    return key == "*" or ("." in key and key.partition(".")[0] in outer)


def respell(fields: Fields) -> dict[str, Any] | None:
    """Return a row with keys respelled as a known format's; None if none fits."""
    for export, spellings in _formats_spelled_so(frozenset(fields)):
        row = {}
        for name, value in fields.items():
            row[spellings.get(name, name)] = value

        if export.recognises(row):
            return row

    return None


@lru_cache(maxsize=256)
def _formats_spelled_so(names: frozenset[str]) -> tuple[tuple[Export, Mapping[str, str]], ...]:
    """Return the formats whose keys some names may be in another spelling, with their own; cached for a table."""
    folded_names = {_folded(name) for name in names}
    possible: list[tuple[Export, Mapping[str, str]]] = []
    for export in EXPORTS:
        for sign in export.signs:
            # a sign of a single key is never told by another spelling
            tops = [key.partition(".")[0] for key in sign]
            if len(sign) < 2 or not all(_folded(top) in folded_names for top in tops):
                continue
            keys = (key.partition(".")[0] for sign_keys in export.signs for key in sign_keys)
            spelled = {}
            for key in (*keys, *export.more.split(), *tops):
                spelled[_folded(key)] = key

            possible.append((export, {name: spelled.get(_folded(name), name) for name in names}))

    return tuple(possible)


def nearest_format(fields: Fields) -> str:
    """Describe the format that a row resembles, and its missing keys; empty if none."""
    with_words = (e for e in EXPORTS if all(e.signs) and (e.read_by or e.tables or e.refuse))
    shares = [(*export.missing(fields), export.name) for export in with_words]
    # the largest share counts, and of equal ones the shortest name
    share, lacking, name = max(shares, key=lambda entry: (entry[0], -len(entry[1])))
    if share < NEAR or not lacking:
        return ""
    return f"it looks like {name}, but has no {' and no '.join(lacking)}"


@lru_cache(maxsize=8192)
def _folded(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()
