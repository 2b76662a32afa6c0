"""Tables that belong together: labels, raters or users in a file, sheet or table of their own, joined by a key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pollex.conversations.logs import BadRow
from pollex.errors import PollexError
from pollex.formats.columns import Column, columns_in, lists_in
from pollex.formats.conservation import BESIDE, LABELS, LEFT_OUT
from pollex.formats.fields import JUDGE_NAMES
from pollex.formats.files import may_hold_tables
from pollex.formats.inference import find_side, names_people, role_likelihood, text_likelihood
from pollex.formats.json_rows import LogRow
from pollex.formats.label_columns import (
    is_doubtful_label,
    is_named_label,
    label_likelihood,
    names_rater,
)
from pollex.formats.log_shapes.chat_rows import is_vote
from pollex.formats.log_shapes.tools import export_of, has_words
from pollex.formats.log_shapes.transcripts import is_transcript
from pollex.formats.names import is_called, is_called_comment, plain, words_of
from pollex.formats.paths import find_value
from pollex.formats.tally import Skipped
from pollex.text import escape_controls, format_count

Rows = Iterable[LogRow | BadRow]
Open = Callable[[], Iterable[Rows]]

SAMPLE = 100
"""Rows of a table by which it is told what it is."""
MOST_ROWS = 300_000
"""Rows of a table beside the log, which is held in memory."""
MOST_ROWS_OF_LOG = 2_000_000
"""Rows of the log, whose keys are held in memory."""
SAME_COLUMNS = 0.6
"""Share of the columns from which on two files are one table."""
FEWEST_KEYS = 5
"""Different values that a key has at least, unless each row has its own."""
OVERLAP = 0.5
"""Share of the values of a key that the other table has, too."""
OF_JOINED = 0.25
"""How much less a key counts that another table brought to the log."""
MANY_TABLES = 60
OWN_FILE = "*"
"""Stands for the file's name where each file is a conversation."""
TALKS = 2
"""The rank of a table that has whole conversations in a cell."""
TURNS = 1
"""The rank of a table that has texts."""
_KEY_WORDS = frozenset("id ids ref key nr no num number uuid file name hash".split())  # noqa: SIM905
_ENDING = re.compile(r"\.(?:txt|log|csv|tsv|json|jsonl|ndjson|html|md)$", re.IGNORECASE)


@dataclass
class Table:
    """A table: files, sheets or database tables with the same columns.

    Attributes:
        rows: The first ones; of a table beside the log all of them.
        keys: The values of its columns that may be keys.
    """

    sources: list[str]
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    keys: dict[str, set[str]] = field(default_factory=dict)

    def is_like(self, fields: Mapping[str, Any]) -> bool:
        """Return whether a row has the columns of this table, but for a few."""
        names = set(self.rows[0])
        return len(names & fields.keys()) >= SAME_COLUMNS * len(names | fields.keys())

    @property
    def columns(self) -> list[Column]:
        return columns_in(self.rows[:SAMPLE])

    @property
    def name(self) -> str:
        """What people call it: the name of the sheet or the database's table, else of the file."""
        return _table_name(self.sources[0])

    @property
    def words(self) -> set[str]:
        """The words of its name, without an s at their ends."""
        words: set[str] = set()
        for word in words_of(Path(self.name).stem):
            words.add(word.removesuffix("s"))
        return words

    @property
    def rank(self) -> int:
        """How much of a talk it holds: `TALKS`, `TURNS`, or nothing."""
        columns = self.columns
        if lists_in(self.rows[:SAMPLE]):
            return TALKS
        if any(
            sum(map(is_transcript, column.texts)) > 0.5 * len(column.texts)
            for column in columns
            if column.texts
        ):
            return TALKS
        if any(text_likelihood(column) > 0.2 for column in columns):
            return TURNS
        return 0

    @property
    def has_speakers(self) -> bool:
        """Whether a column names both sides of a talk."""
        return any(
            {"user", "assistant"} <= {find_side(word) for word in column.words}
            for column in self.columns
            if role_likelihood(column) > 0.5
        )


@dataclass(frozen=True)
class Key:
    """Where two tables meet.

    Attributes:
        own: The column of the table beside the log.
        of_log: The column of the log, or of a table that is joined to it.
    """

    own: str
    of_log: str
    score: float
    shared: int


@dataclass
class Join:
    """A table beside the log, by its key.

    Attributes:
        names: What its columns are called in the log's rows.
        by_key: The fields that a row gets.
        labels: Columns that may be the label, by their names in the log's rows.
    """

    table: Table
    key: Key
    names: Mapping[str, str]
    by_key: Mapping[str, Mapping[str, Any]]
    labels: Sequence[str]
    outcome: str


@dataclass
class Joins:
    """What is joined to the rows of a log.

    Attributes:
        log: The files or tables that have the words.
        idle: Tables of the same database that have no words, and meet nothing.
    """

    log: frozenset[str]
    joins: Sequence[Join]
    log_keys: Mapping[str, frozenset[str]]
    idle: Sequence[Table] = ()

    def rows(self, rows: Rows) -> Iterator[LogRow | BadRow | Skipped]:
        """Yield the log's rows with what the other tables say of them; those tables' rows as what they are."""
        for row in rows:
            if isinstance(row, LogRow) and row.source in self.log:
                yield replace(row, fields=self.widened(row))
                continue
            if any(row.source in table.sources for table in self.idle):
                yield Skipped(row.source, row.line, LEFT_OUT)
                continue
            beside = next(
                (join for join in self.joins if row.source in join.table.sources),
                None,
            )
            if beside is None or isinstance(row, BadRow):
                yield row
                continue
            key = key_of(find_value(row.fields, beside.key.own))
            there = key in self.log_keys[beside.key.of_log]
            yield Skipped(
                row.source,
                row.line,
                beside.outcome if there else LEFT_OUT,
            )

    def widened(self, row: LogRow) -> dict[str, Any]:
        """Return a row with the fields that other tables have for it."""
        fields = dict(row.fields)
        # in the order in which they were found: a join may bring the key of the next
        for join in self.joins:
            place = join.key.of_log
            if place == OWN_FILE:
                value = row.source
            else:
                value = find_value(fields, place)

            # all rows have the same columns, as those of one table have
            fields |= dict.fromkeys(join.names.values()) | dict(join.by_key.get(key_of(value), {}))

        return fields

    @property
    def labels(self) -> list[str]:
        """Columns of the other tables that may be the label."""
        labels: list[str] = []
        for join in self.joins:
            labels.extend(join.labels)
        return labels

    @property
    def notes(self) -> Iterator[str]:
        """Notes on what was joined, and on rows that name nothing in the log."""
        for table in self.idle:
            rows = format_count(len(table.rows), "row", "rows")
            yield f"{escape_controls(table.name, 60)} has no words, names nothing in the log, and is left out ({rows})"

        for join in self.joins:
            log_keys = self.log_keys[join.key.of_log]
            orphans = 0
            for row in join.table.rows:
                orphans += key_of(find_value(row, join.key.own)) not in log_keys
            if join.key.of_log == OWN_FILE:
                of_log = "the file's name"
            else:
                of_log = repr(join.key.of_log)

            lost = f"; {format_count(orphans, 'row names', 'rows name')} nothing in the log, and left out"
            yield (
                f"{escape_controls(join.table.name, 60)} is joined to the log: its {join.key.own!r:.60} "
                f"is {of_log:.60} there ({format_count(len(join.table.rows), 'row', 'rows')}"
                f"{lost if orphans else ''})"
            )


def key_of(value: object) -> str:
    """Return a value as keys are compared: text, a file's name without its folder and ending; empty for nothing."""
    if value is None or isinstance(value, bool | list | dict):
        return ""
    # whole numbers become decimals in a column with empty cells
    if isinstance(value, float):
        return f"{value:g}" if value.is_integer() else ""
    return _ENDING.sub("", str(value).strip().rpartition("/")[2])


def joins_of(files: Sequence[str], opened: Open) -> Joins | None:
    """Return how the tables of some files are joined; None where one alone has rows, or nothing joins them."""
    try:
        tables = _tables_of_files(files, opened())
        log = _log_among(tables, alone=len(files) == 1)
        beside = [table for table in tables if table is not log]
        if log is None or not _read_whole(log, beside, opened()):
            return None
    except PollexError:  # the reading itself says it
        return None

    # the keys that the log has: its columns, and its files where it has several
    keys = dict(log.keys)
    if len(log.sources) > 1:
        keys[OWN_FILE] = {key_of(source) for source in log.sources}

    owners = dict.fromkeys(keys, log)
    joins: list[Join] = []
    # the best join first; the columns that it brings may be keys of the next
    while (best := _best_of(beside, keys, owners, log)) is not None:
        table, key = best
        join = _join_table(table, key, keys)
        joins.append(join)
        beside.remove(table)
        for path, values in _keys_in(table).items():
            if path in join.names:
                keys[join.names[path]] = values
                owners[join.names[path]] = table

    # tables of one database that meet nothing are idle; other files stay logs
    idle = beside if len(files) == 1 else []
    if not joins and not idle:
        return None

    log_keys = {join.key.of_log: frozenset(keys[join.key.of_log]) for join in joins}
    return Joins(frozenset(log.sources), joins, log_keys, idle)


def _tables_of_files(files: Sequence[str], sources: Iterable[Rows]) -> list[Table]:
    """Return the tables of some files with their first rows, those of the same columns as one."""
    gathered: list[Table] = []
    of_source: dict[str, Table] = {}
    for file, rows in zip(files, sources, strict=True):
        # where a file is one table, its first rows say which
        if may_hold_tables([file]):
            looked_at = rows
        else:
            looked_at = islice(rows, SAMPLE)

        for row in looked_at:
            if not isinstance(row, LogRow):
                continue
            table = of_source.get(row.source)
            if table is None:
                table = next(
                    (table_so_far for table_so_far in gathered if table_so_far.is_like(row.fields)),
                    None,
                )
                if table is None:
                    table = Table([])
                    gathered.append(table)
                of_source[row.source] = table
                table.sources.append(row.source)

            if len(table.rows) < SAMPLE:
                table.rows.append(row.fields)

    return gathered


def _log_among(tables: Sequence[Table], *, alone: bool) -> Table | None:
    """Return the one table that has what was said; None where there are several, or tables that tools write.

    Args:
        alone: Whether all are in one file, where a table that looks like a tool's is none.
    """
    if not 1 < len(tables) <= MANY_TABLES:
        return None

    # most of a talk first, then columns of speakers, then the longest texts
    log = max(
        tables,
        key=lambda table: (table.rank, table.has_speakers, _count_characters(table)),
    )
    others = []
    for table in tables:
        if table is not log:
            others.append(table)

    # exports of tools have readers of their own, and two logs aren't joined
    exports = []
    for table in others:
        if _is_export(table) and not (_are_votes(table) and _is_unknown(log)):
            exports.append(table)

    if _is_export(log) or (not alone and exports):
        return None
    if not log.rank or any(map(_is_talk, others)):
        return None
    return log


def _read_whole(
    log: Table,
    beside: Sequence[Table],
    sources: Iterable[Rows],
) -> bool:
    """Take all rows of the tables beside a log, and all keys of the log; return whether they could be held."""
    of_source = {}
    for table in beside:
        for source in table.sources:
            of_source[source] = table

    log_sources = set(log.sources)
    paths = []
    for column in log.columns:
        if _may_be_key(column):
            paths.append(column.path)

    log.keys = {path: set() for path in paths}
    # tables beside the log are held whole; of the log its keys alone
    for table in beside:
        table.rows = []

    rows_of_log = 0
    for row in chain.from_iterable(sources):
        if not isinstance(row, LogRow):
            continue
        if row.source in log_sources:
            rows_of_log += 1
            for path in paths:
                log.keys[path].add(key_of(find_value(row.fields, path)))
        elif (other := of_source.get(row.source)) is not None:
            other.rows.append(row.fields)
            if len(other.rows) > MOST_ROWS:
                return False

        if rows_of_log > MOST_ROWS_OF_LOG:
            return False

    # a key has several values
    fewest = min(FEWEST_KEYS, 0.5 * rows_of_log)
    key_values = {}
    for path, values in log.keys.items():
        if len(values) >= fewest:
            key_values[path] = values - {""}

    log.keys = key_values
    return True


def _is_export(table: Table) -> bool:
    return any(export_of(row) is not None for row in islice(table.rows, 3))


def _are_votes(table: Table) -> bool:
    """Return whether a table has thumbs under usual names, which join a log of any shape."""
    return all(map(is_vote, islice(table.rows, 3)))


def _is_unknown(log: Table) -> bool:
    """Return whether no reader knows the rows of a log, and none could take thumbs for them."""
    return not any(has_words(row) for row in islice(log.rows, 3))


def _is_talk(table: Table) -> bool:
    """Return whether a table is a log itself, and nothing beside one."""
    return table.rank == TALKS or (table.rank == TURNS and table.has_speakers)


def _count_characters(table: Table) -> int:
    return max((sum(map(len, column.texts)) for column in table.columns), default=0)


def _table_name(source: str) -> str:
    name = Path(source).name
    for sign in ("!", ":"):
        name = name.rpartition(sign)[2] or name
    return name


def _keys_in(table: Table) -> dict[str, set[str]]:
    """Return the values of the columns of a table that may be keys."""
    paths = []
    for column in table.columns:
        if _may_be_key(column):
            paths.append(column.path)

    gathered: dict[str, set[str]] = {}
    for path in paths:
        values = {key_of(find_value(row, path)) for row in table.rows} - {""}
        if len(values) >= min(FEWEST_KEYS, 0.5 * len(table.rows)):
            gathered[path] = values

    return gathered


def _may_be_key(column: Column) -> bool:
    if "[]" in column.path or not column.filled or column.times > 0.8:
        return False
    if is_called(column.path, "time") and not is_called(column.path, "conversation"):
        return False

    filled = []
    for value in column.values:
        if value not in (None, ""):
            filled.append(value)

    short = all(isinstance(value, str | int | float) and len(str(value)) <= 120 for value in filled)
    is_id = bool(_KEY_WORDS & {*words_of(column.path)})  # a file's name may be words
    return short and label_likelihood(column) == 0 and (is_id or text_likelihood(column) < 0.5)


def _best_of(
    tables: Sequence[Table],
    keys: Mapping[str, set[str]],
    owners: Mapping[str, Table],
    log: Table,
) -> tuple[Table, Key] | None:
    """Return the table that joins best, and its key; None where none does."""
    gathered = []
    for table in tables:
        if (key := _key_of(table, keys, owners, log)) is not None:
            gathered.append((table, key))

    return max(gathered, key=lambda pair: pair[1].score, default=None)


def _key_of(
    table: Table,
    keys: Mapping[str, set[str]],
    owners: Mapping[str, Table],
    log: Table,
) -> Key | None:
    """Return by which column a table meets the log, rather a column of its own than one brought to it."""
    gathered = []
    for path, values in _keys_in(table).items():
        for of_log, others in keys.items():
            shared = len(values & others)
            # both have this share of the smaller set of values
            share = shared / min(len(values), len(others))
            alike = _likeness_of_names(
                path,
                table,
                of_log,
                owners.get(of_log, table),
            )
            # small numbers meet by chance, unless the names are alike
            counted = all(value.isdecimal() and len(value) < 7 for value in islice(values, 50))
            if shared < 2 or share < OVERLAP or (counted and not alike):
                continue
            # the log's own column goes before one that another table brought
            brought = OF_JOINED if owners.get(of_log) is not log else 0.0
            gathered.append(Key(path, of_log, alike + share - brought, shared))

    return max(gathered, key=lambda key: key.score, default=None)


def _likeness_of_names(
    path: str,
    table: Table,
    of_log: str,
    other: Table,
) -> float:
    """Return how much two names say that they name the same: `message_id`, and `id` of a table of messages."""
    if of_log == OWN_FILE:
        return 1.0

    words = _naming_words(path)
    others = _naming_words(_without_table(of_log, other))
    if plain(path) == plain(of_log) and words:
        return 1.0
    # an id is named after its table: of all its words, or of some
    if words & others or (not others and words == other.words):
        return 1.0
    if not words and others == table.words:
        return 1.0
    if (not others and words & other.words) or (not words and others & table.words):
        return 0.8
    # who sent a message is one of the people of a table
    if not words and names_people(table.name) and _names_person(of_log):
        return 0.8

    both = all(is_called(name, "conversation") for name in (path, of_log))
    return 0.5 if both else 0.0


def _without_table(column: str, table: Table) -> str:
    """Return a column's own name, without the table's that was put before it."""
    return column.removeprefix(f"{Path(table.name).stem}.")


def _names_person(column: str) -> bool:
    return is_called(column, "role") or names_people(column)


def _naming_words(name: str) -> set[str]:
    """Return the words of a key's name that say what it names."""
    return {word.removesuffix("s") for word in words_of(name)} - _KEY_WORDS


def _join_table(
    table: Table,
    key: Key,
    keys: Mapping[str, set[str]],
) -> Join:
    """Return a table as it is joined; its columns keep their names where the log has none of that name."""
    columns = []
    for column in table.columns:
        if column.path != key.own:
            columns.append(column)

    rows_of_key: dict[str, list[Mapping[str, Any]]] = {}
    for row in table.rows:
        rows_of_key.setdefault(key_of(find_value(row, key.own)), []).append(row)

    several = any(len(rows) > 1 for rows in rows_of_key.values())
    top_level = dict.fromkeys(name for row in table.rows[:SAMPLE] for name in row)
    # the names that its columns get in the log's rows
    stem = Path(table.name).stem
    # several rows of a key make lists, which can't be the log's judge
    of_raters = frozenset(JUDGE_NAMES if several else ())
    names = {}
    for name in top_level:
        if name != key.own:
            names[name] = (
                name
                if _may_keep_its_name(name) and name not in {*keys, *of_raters}
                else f"{stem}.{name}"
            )

    by_key = {}
    for value, rows in rows_of_key.items():
        if value:
            by_key[value] = _fields_of_key(rows, names)

    # what in it may be the label
    labels = []
    for column in columns:
        if column.path in names and (label_likelihood(column) > 0 or is_doubtful_label(column)):
            labels.append(names[column.path])

    has_label = any(is_named_label(name) for name in names)
    return Join(
        table,
        key,
        names,
        by_key,
        labels,
        LABELS if labels or has_label else BESIDE,
    )


def _may_keep_its_name(name: str) -> bool:
    """Return whether a column's name says what it is of the log: a label, a comment, or who asked."""
    says = is_named_label(name) or names_rater(name) or is_called_comment(name)
    return says or names_people(name)


def _fields_of_key(rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the rows of a key; a list where there are several rows."""
    fields: dict[str, Any] = {}
    for name, new in names.items():
        values = [row.get(name) for row in rows]
        if len(rows) == 1:
            fields[new] = values[0]
        else:
            fields[new] = values if any(value not in (None, "") for value in values) else None

    return fields
