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
    ConversationFacts,
    LeftOutRow,
    LogPart,
    Message,
    ToolScore,
    parse_timestamp,
)
from pollex.formats.labels import normalize_number
from pollex.formats.log_shapes.exports import (
    Fields,
    WrongExportFile,
    format_id,
    get_at_path,
    has_path,
    keep_filled_facts,
    list_objects,
    parse_flag,
    require_text,
    unwrap_object,
)
from pollex.formats.log_shapes.payloads import parse_nested_json
from pollex.formats.log_shapes.readers import LOG_SHAPE_READERS
from pollex.formats.log_shapes.turns import (
    ROLE_FIELD_NAMES,
    TEXT_FIELD_NAMES,
    list_file_marks,
    read_message_turns,
)
from pollex.text import JsonDict, JsonObject

MIN_NEAR_KEY_SHARE = 0.6
"""The share of a format's keys from which on a row that lacks the others is said to look like it."""

PartTable = Mapping[str, Any]
"""The fields of one kind of part, by what they are."""


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One export format, recognized by its keys; `tools.toml` says what its fields mean."""

    module: str
    name: str
    signs: tuple[tuple[str, ...], ...]
    without: str = ""
    where: str = ""
    more: str = ""
    read_by: str = ""
    tables: tuple[tuple[Callable[[PartTable, Fields], Iterable[LogPart]], PartTable], ...] = ()
    refuse: tuple[str, ...] = ()

    @property
    def wordless(self) -> bool:
        """Whether its rows have thumbs or facts alone, and no words."""
        return (
            not self.read_by
            and not self.refuse
            and all(make in (_make_thumbs, _make_facts) for make, _ in self.tables)
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
        for sign in signs:
            if _has_all_keys(fields, sign):
                break
        else:
            return False

        if any(has_path(fields, key) for key in without):
            return False
        # a condition is a path that must have a value, or the name of a function
        if "." in self.where:
            return any(get_at_path(fields, path) is not None for path in self.where.split("|"))
        return not self.where or bool(self._function(self.where)(fields))

    def read(self, fields: Fields) -> Iterable[LogPart]:
        """Return the parts of a row.

        Raises:
            BadInput: It can't be read.
            WrongFile: The whole file can't be used.
        """
        if self.refuse:
            raise WrongExportFile(self.refuse[0], hint=self.refuse[1])

        read_parts: Iterable[LogPart]
        if self.read_by:
            read_parts = self._function(self.read_by)(fields)
        else:
            read_parts = ()

        rows = (
            (make, table, row)
            for make, table in self.tables
            for row in _iterate_table_items(table, fields)
        )
        return chain(
            read_parts,
            (part for make, table, row in rows for part in make(table, row)),
        )

    def _function(self, name: str) -> Callable[[Fields], Any]:
        return _load_function(self.module, name)

    def missing(self, fields: Fields) -> tuple[float, list[str]]:
        """Return the share of a format's keys that a row has, and the missing keys."""
        best = max(
            self.signs,
            key=lambda sign: sum(has_path(fields, key) for key in sign) / len(sign),
        )
        lacking = [key for key in best if not has_path(fields, key)]
        return 1 - len(lacking) / len(best), lacking

    def weight(self, fields: Fields) -> int:
        """Return how many keys of the row itself mark it."""
        return max(
            sum("*" not in key for key in sign)
            for sign in self.signs
            if _has_all_keys(fields, sign)
        )


@cache
def _load_function(module: str, name: str) -> Callable[[Fields], object]:
    """Return a function of a module that reads exports, which is loaded with its first row."""
    function: Callable[[Fields], object] = getattr(
        import_module(f"{__package__}.{module}"),
        name,
    )
    return function


def _has_all_keys(fields: Fields, sign: tuple[str, ...]) -> bool:
    for key in sign:  # noqa: SIM110, every row comes here
        if not has_path(fields, key):
            return False
    return True


def _iterate_table_items(table: PartTable, fields: Fields) -> Iterator[Fields]:
    # `named`: an entry for each key of an object; `each`: for each item of a list; ^ is the row
    for name, value in (
        unwrap_object(get_at_path(fields, table["named"])).items() if "named" in table else ()
    ):
        yield {"^": fields, "name": name, "value": parse_nested_json(value)}

    if "each" in table:
        parsed = parse_nested_json(get_at_path(fields, table["each"]))
        for entry in list_objects([parsed] if isinstance(parsed, Mapping) else parsed):
            yield {"^": fields, **entry}
    elif "named" not in table:
        yield fields


def _make_thumbs(table: PartTable, fields: Fields) -> Iterator[ToolScore]:
    value, comment = (
        _get_first_filled(fields, table.get(name, ""))
        for name in ("stars" if "stars" in table else "value", "comment")
    )
    # neither thumb nor comment, or the number that stands for no thumb
    lacking = value is None and (not comment or table.get("valued"))
    if lacking or ("none" in table and normalize_number(value) == table["none"]):
        return

    # the narrowest target with an id counts
    kinds = [target for target in ("span", "trace", "conversation") if target in table] or [
        "message"
    ]
    targets = []
    for target in kinds:
        if id_ := _get_id(fields, table[target]):
            targets.append((target, id_))

    if targets:
        yield ToolScore(
            *(*targets[0], value),  # type: ignore[arg-type]
            name=_get_id(fields, table.get("name", "")) or "",
            source=_get_id(fields, table.get("source", "")) or "",
            comment=comment,
            tags=_get_first_filled(fields, table.get("tags", "")),
            person=_get_id(fields, table.get("person", "")),
            at=parse_timestamp(_get_first_filled(fields, table.get("at", ""))),
            summary=bool(table.get("summary")),
            rating="stars" in table,
            message=None
            if targets[0][0] == "message"
            else _get_id(fields, table.get("message", "")),
            key=_get_id(fields, table.get("key", "")),
        )


def _make_messages(table: PartTable, fields: Fields) -> Iterator[Message | LeftOutRow]:
    # rows that `when` and `unless` rule out are no messages
    when = ((get_at_path(fields, name), value) for name, value in table.get("when", {}).items())
    if parse_flag(_get_first_filled(fields, table.get("unless", ""))) or any(
        actual not in (None, value) for actual, value in when
    ):
        if "apart" in table:
            yield LeftOutRow(f"{table['apart']} were left out")
        return

    conversation = _get_id(fields, table["conversation"]) or ""
    key = _get_id(fields, table.get("key", ""))
    role = _get_first_filled(fields, table["role"])
    users = table.get("users")
    agents = table.get("agents")
    # the words, and the marks of files
    words: object = next(
        (value for name in table["text"].split("|") if (value := _get_first_filled(fields, name))),
        None,
    )
    # a message without words leaves its kind
    if "kind" in table and not words:
        words = f"[{_get_id(fields, table['kind'])}]"

    if isinstance(words, list):
        parts = words
    else:
        parts = [words if isinstance(words, Mapping) else str(words or "").strip()]

    files = (
        parse_nested_json(get_at_path(fields, name)) for name in table.get("files", "").split("|")
    )
    content = [
        *filter(None, parts),
        *(mark for listed in files for mark in list_file_marks(listed)),
    ]
    # calls of tools, and the id of the call that a tool's message answers
    beside: JsonDict = {}
    if calls := list_objects(parse_nested_json(get_at_path(fields, table.get("calls", "")))):
        beside["tool_calls"] = calls
    if answered := _get_id(fields, table.get("answers", "")):
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
            yield LeftOutRow(
                f"messages by {who!r:.40}, neither the user's nor the assistant's, were left out"
            )

        if role is None or not (content or beside):
            return

    # its place: after its parent in a tree, else by time
    above = _get_first_filled(fields, table.get("parent", ""))
    parent = format_id(above[-1] if isinstance(above, list) and above else above)
    sent_at = parse_timestamp(_get_first_filled(fields, table.get("at", "")))
    turns = read_message_turns({"role": role, "content": content, **beside})
    yield Message(
        conversation,
        key,
        turns,
        sent_at,
        parent,
        tree=parent is not None,
    )


def _make_facts(table: PartTable, fields: Fields) -> Iterator[ConversationFacts]:
    values = {}
    for name, names in table.items():
        if name not in ("conversation", "shown"):
            values[name] = _get_first_filled(fields, names)

    read = {
        "user": format_id(values.get("user")),
        "metadata": parse_nested_json(values.get("metadata")),
    }
    yield ConversationFacts(
        _get_id(fields, table["conversation"]) or "",
        keep_filled_facts(**values | read),
        _get_id(fields, table.get("shown", "")),
    )


def _read_inner_rows(table: PartTable, fields: Fields) -> Iterable[LogPart]:
    row = {}
    for name, value in fields.items():
        if name != "^":
            row[name] = value

    return EXPORT_FORMAT_BY_NAME[table["of"]].read(
        row | {name: _get_first_filled(fields, n) for name, n in table.get("with", {}).items()}
    )


def _get_first_filled(fields: Fields, names: str) -> object:
    # names with a bar between them are tried in order
    for name in names.split("|") if names else ():
        if name[0] == "=":  # the value itself
            value: object = name[1:]
        else:
            if name in fields:
                value = fields[name]
            else:
                value = get_at_path(fields, name)

        # NaN, which differs from itself, is nothing
        if value is not None and value != "" and value == value:
            return value

    return None


def _get_id(fields: Fields, names: str) -> str | None:
    # a ! at the end: the row must have the id
    listed = names.removesuffix("!").split("|") if names else ()
    for name in listed:
        if id_ := format_id(_get_first_filled(fields, name)):
            return id_

    if names.endswith("!"):
        return require_text({}, *(name.removeprefix("^.") for name in listed))
    return None


PART_MAKERS: Mapping[str, Callable[[PartTable, Fields], Iterable[LogPart]]] = {
    "facts": _make_facts,
    "message": _make_messages,
    "rows": _read_inner_rows,
    "thumb": _make_thumbs,
}


def _load_export_formats() -> Iterator[ExportFormat]:
    for module, exports in tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text("utf-8")
    ).items():
        for name, row in exports.items():
            signs = tuple(tuple(keys.split()) for keys in row.pop("keys"))
            # how to make each kind of part; a format may have several tables of a kind
            makers: list[tuple[Callable[[PartTable, Fields], Iterable[LogPart]], PartTable]] = []
            for kind, make in PART_MAKERS.items():
                tables = row.pop(kind, [])
                if not isinstance(tables, list):
                    tables = [tables]
                makers += [(make, table) for table in tables]

            yield ExportFormat(
                module,
                name,
                signs,
                tables=tuple(makers),
                read_by=row.pop("read", ""),
                **row,
            )


EXPORT_FORMATS = tuple(_load_export_formats())
EXPORT_FORMAT_BY_NAME = {export.name: export for export in EXPORT_FORMATS}


def find_export_format(fields: Fields) -> ExportFormat | None:
    """Return the most specific format whose keys a row has; None if there is none.

    A row that has words is never one of thumbs or facts alone, whatever keys stand beside the
    words.
    """
    # what names alone decide is remembered for all rows of a table
    possible = _list_possible_formats(frozenset(fields))
    fitting = []
    for candidate in possible:
        if candidate.export.recognises_rest(fields, candidate.signs, candidate.without):
            fitting.append(candidate.export)

    if not fitting:
        return None
    if all(export.wordless for export in fitting) and has_spoken_words(fields):
        fitting = [export for export in fitting if not export.wordless]

    return max(fitting, key=lambda export: export.weight(fields), default=None)


LIST_READER_NAMES = ("messages", "ShareGPT", "Gemini")
"""Readers that recognise any list, also one of ids."""


def has_spoken_words(fields: Fields) -> bool:
    """Return whether a row has what somebody said: a turn, an exchange, or a list of messages under any name."""
    if any(
        reader.recognises(fields)
        for reader in LOG_SHAPE_READERS
        if reader.name not in LIST_READER_NAMES
    ):
        return True
    return any(_are_messages_with_words(value) for value in fields.values())


def _are_messages_with_words(value: object) -> bool:
    if not isinstance(value, list | str):
        return False

    if isinstance(value, list) or value.lstrip()[:1] == "[":
        messages = list_objects(value)
    else:
        messages = []

    return bool(messages) and all(_has_role_and_text(message) for message in messages[:3])


def _has_role_and_text(message: JsonObject) -> bool:
    return any(name in message for name in ROLE_FIELD_NAMES) and any(
        name in message for name in TEXT_FIELD_NAMES
    )


class PossibleFormat(NamedTuple):
    """A format that rows with certain names may have.

    Attributes:
        signs: What is left to be looked for inside their values.
        without: What is left that must not be there.
    """

    export: ExportFormat
    signs: tuple[tuple[str, ...], ...]
    without: tuple[str, ...]


@lru_cache(maxsize=256)
def _list_possible_formats(names: frozenset[str]) -> tuple[PossibleFormat, ...]:
    """Return the formats possible for these top-level names; cached for all rows of a table."""
    outer = {*names, "*"}
    possible: list[PossibleFormat] = []
    for export in EXPORT_FORMATS:
        # keys that are names of the row are settled; paths may lead into its values
        left = []
        for sign in export.signs:
            left.append(tuple(key for key in sign if key not in names))

        signs = tuple(
            dict.fromkeys(
                sign for sign in left if all(_starts_in_fields(key, outer) for key in sign)
            )
        )
        without = tuple(export.without.split())
        if signs and names.isdisjoint(without):
            possible.append(
                PossibleFormat(
                    export,
                    signs,
                    tuple(key for key in without if _starts_in_fields(key, outer)),
                )
            )

    return tuple(possible)


def _starts_in_fields(key: str, outer: Collection[str]) -> bool:
    """Return whether a path may lead into one of some fields."""
    return key == "*" or ("." in key and key.partition(".")[0] in outer)


def respell_row(fields: Fields) -> JsonDict | None:
    """Return a row with keys respelled as a known format's; None if none fits."""
    for export, spellings in _list_respelled_formats(frozenset(fields)):
        row = {}
        for name, value in fields.items():
            row[spellings.get(name, name)] = value

        if export.recognises(row):
            return row

    return None


@lru_cache(maxsize=256)
def _list_respelled_formats(
    names: frozenset[str],
) -> tuple[tuple[ExportFormat, Mapping[str, str]], ...]:
    """Return the formats whose keys some names may be in another spelling, with their own; cached for a table."""
    folded_names = {_normalize_name(name) for name in names}
    possible: list[tuple[ExportFormat, Mapping[str, str]]] = []
    for export in EXPORT_FORMATS:
        for sign in export.signs:
            # a sign of a single key is never told by another spelling
            tops = [key.partition(".")[0] for key in sign]
            if len(sign) < 2 or not all(_normalize_name(top) in folded_names for top in tops):
                continue
            keys = (key.partition(".")[0] for sign_keys in export.signs for key in sign_keys)
            spelled = {}
            for key in (*keys, *export.more.split(), *tops):
                spelled[_normalize_name(key)] = key

            possible.append(
                (export, {name: spelled.get(_normalize_name(name), name) for name in names})
            )

    return tuple(possible)


def describe_nearest_format(fields: Fields) -> str:
    """Describe the format that a row resembles, and its missing keys; empty if none."""
    with_words = (e for e in EXPORT_FORMATS if all(e.signs) and (e.read_by or e.tables or e.refuse))
    shares = [(*export.missing(fields), export.name) for export in with_words]
    # the largest share counts, and of equal ones the shortest name
    share, lacking, name = max(shares, key=lambda entry: (entry[0], -len(entry[1])))
    if share < MIN_NEAR_KEY_SHARE or not lacking:
        return ""
    return f"it looks like {name}, but has no {' and no '.join(lacking)}"


@lru_cache(maxsize=8192)
def _normalize_name(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()
