"""Tables that belong together: labels, raters or users in a file, sheet or table of their own, joined by a key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path

from pollex.conversations.logs import BadRow
from pollex.errors import PollexError
from pollex.formats.columns import Column, find_lists_of_turns, list_columns
from pollex.formats.conservation import (
    ROW_OUTCOME_ABOUT_CONVERSATIONS,
    ROW_OUTCOME_LABELS,
    ROW_OUTCOME_LEFT_OUT_BY_USER,
)
from pollex.formats.fields import JUDGE_FIELD_NAMES
from pollex.formats.files import may_hold_several_tables
from pollex.formats.inference import (
    estimate_role_likelihood,
    estimate_text_likelihood,
    find_role_by_name,
    is_named_after_people,
)
from pollex.formats.json_rows import LogRow
from pollex.formats.label_columns import (
    estimate_label_likelihood,
    is_ambiguous_label_column,
    is_label_column_name,
    is_rater_column_name,
)
from pollex.formats.log_shapes.chat_rows import is_vote_row
from pollex.formats.log_shapes.tools import find_export_format, has_spoken_words
from pollex.formats.log_shapes.transcripts import is_transcript
from pollex.formats.log_shapes.unfolded import extract_carried_row
from pollex.formats.names import (
    is_named_as_comment,
    is_named_as_part,
    remove_accents,
    split_name_words,
)
from pollex.formats.paths import find_value_at_path
from pollex.formats.tally import SkippedRow
from pollex.text import JsonDict, JsonObject, escape_controls, format_count

RowsOfFile = Iterable[LogRow | BadRow]
OpenRowsOfEachFile = Callable[[], Iterable[RowsOfFile]]

SAMPLE_ROWS_PER_TABLE = 100
"""Rows of a table by which it is told what it is."""
MAX_JOINED_ROWS = 300_000
"""Rows of a table beside the log, which is held in memory."""
MAX_LOG_ROWS = 2_000_000
"""Rows of the log, whose keys are held in memory."""
MIN_SHARED_COLUMN_SHARE = 0.6
"""Share of the columns from which on two files are one table."""
MIN_KEY_VALUES = 5
"""Different values that a key has at least, unless each row has its own."""
MIN_KEY_OVERLAP = 0.5
"""Share of the values of a key that the other table has, too."""
PENALTY_FOR_KEY_OF_JOINED_TABLE = 0.25
"""How much less a key counts that another table brought to the log."""
MAX_TABLES = 60
FILE_NAME_AS_KEY_COLUMN = "*"
"""Stands for the file's name where each file is a conversation."""
RANK_OF_TABLE_WITH_CONVERSATIONS = 2
"""The rank of a table that has whole conversations in a cell."""
RANK_OF_TABLE_WITH_TURNS = 1
"""The rank of a table that has texts."""
_KEY_NAME_WORDS = frozenset("id ids ref key nr no num number uuid file name hash".split())  # noqa: SIM905
_FILE_ENDING_PATTERN = re.compile(
    r"\.(?:txt|log|csv|tsv|json|jsonl|ndjson|html|md)$", re.IGNORECASE
)


@dataclass
class SourceTable:
    """A table: files, sheets or database tables with the same columns.

    Attributes:
        rows: The first ones; of a table beside the log all of them.
        keys: The values of its columns that may be keys.
    """

    sources: list[str]
    rows: list[JsonObject] = field(default_factory=list)
    keys: dict[str, set[str]] = field(default_factory=dict)

    def is_like(self, fields: JsonObject) -> bool:
        """Return whether a row has the columns of this table, but for a few."""
        names = set(self.rows[0])
        return len(names & fields.keys()) >= MIN_SHARED_COLUMN_SHARE * len(names | fields.keys())

    @property
    def columns(self) -> list[Column]:
        return list_columns(self.rows[:SAMPLE_ROWS_PER_TABLE])

    @property
    def name(self) -> str:
        """What people call it: the name of the sheet or the database's table, else of the file."""
        return _get_table_name(self.sources[0])

    @property
    def words(self) -> set[str]:
        """The words of its name, without an s at their ends."""
        words: set[str] = set()
        for word in split_name_words(Path(self.name).stem):
            words.add(word.removesuffix("s"))
        return words

    @property
    def rank(self) -> int:
        """How much of a talk it holds: `TALKS`, `TURNS`, or nothing."""
        columns = self.columns
        if find_lists_of_turns(self.rows[:SAMPLE_ROWS_PER_TABLE]):
            return RANK_OF_TABLE_WITH_CONVERSATIONS
        if any(
            sum(map(is_transcript, column.texts)) > 0.5 * len(column.texts)
            for column in columns
            if column.texts
        ):
            return RANK_OF_TABLE_WITH_CONVERSATIONS
        if any(estimate_text_likelihood(column) > 0.2 for column in columns):
            return RANK_OF_TABLE_WITH_TURNS
        return 0

    @property
    def has_speakers(self) -> bool:
        """Whether a column names both sides of a talk."""
        return any(
            {"user", "assistant"} <= {find_role_by_name(word) for word in column.words}
            for column in self.columns
            if estimate_role_likelihood(column) > 0.5
        )


@dataclass(frozen=True)
class JoinKey:
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
class TableJoin:
    """A table beside the log, by its key.

    Attributes:
        names: What its columns are called in the log's rows.
        by_key: The fields that a row gets.
        labels: Columns that may be the label, by their names in the log's rows.
    """

    table: SourceTable
    key: JoinKey
    names: Mapping[str, str]
    by_key: Mapping[str, JsonObject]
    labels: Sequence[str]
    outcome: str


@dataclass
class LogJoins:
    """What is joined to the rows of a log.

    Attributes:
        log: The files or tables that have the words.
        idle: Tables of the same database that have no words, and meet nothing.
    """

    log: frozenset[str]
    joins: Sequence[TableJoin]
    log_keys: Mapping[str, frozenset[str]]
    idle: Sequence[SourceTable] = ()

    def rows(self, rows: RowsOfFile) -> Iterator[LogRow | BadRow | SkippedRow]:
        """Yield the log's rows with what the other tables say of them; those tables' rows as what they are."""
        for row in rows:
            if isinstance(row, LogRow) and row.source in self.log:
                yield replace(row, fields=self.widened(row))
                continue
            if any(row.source in table.sources for table in self.idle):
                yield SkippedRow(row.source, row.line, ROW_OUTCOME_LEFT_OUT_BY_USER)
                continue
            beside = next(
                (join for join in self.joins if row.source in join.table.sources),
                None,
            )
            if beside is None or isinstance(row, BadRow):
                yield row
                continue
            key = normalize_key_value(find_value_at_path(row.fields, beside.key.own))
            there = key in self.log_keys[beside.key.of_log]
            yield SkippedRow(
                row.source,
                row.line,
                beside.outcome if there else ROW_OUTCOME_LEFT_OUT_BY_USER,
            )

    def widened(self, row: LogRow) -> JsonDict:
        """Return a row with the fields that other tables have for it."""
        fields = dict(row.fields)
        # in the order in which they were found: a join may bring the key of the next
        for join in self.joins:
            place = join.key.of_log
            if place == FILE_NAME_AS_KEY_COLUMN:
                value = row.source
            else:
                value = find_value_at_path(fields, place)

            # all rows have the same columns, as those of one table have
            fields |= dict.fromkeys(join.names.values()) | dict(
                join.by_key.get(normalize_key_value(value), {})
            )

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
                orphans += (
                    normalize_key_value(find_value_at_path(row, join.key.own)) not in log_keys
                )
            if join.key.of_log == FILE_NAME_AS_KEY_COLUMN:
                of_log = "the file's name"
            else:
                of_log = repr(join.key.of_log)

            lost = f"; {format_count(orphans, 'row names', 'rows name')} nothing in the log, and left out"
            yield (
                f"{escape_controls(join.table.name, 60)} is joined to the log: its {join.key.own!r:.60} "
                f"is {of_log:.60} there ({format_count(len(join.table.rows), 'row', 'rows')}"
                f"{lost if orphans else ''})"
            )


def normalize_key_value(value: object) -> str:
    """Return a value as keys are compared: text, a file's name without its folder and ending; empty for nothing.

    A spreadsheet saves 0042 as 42, and a column with empty cells has 42.0.
    """
    if value is None or isinstance(value, bool | list | dict):
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else ""
    key = _FILE_ENDING_PATTERN.sub("", str(value).strip().rpartition("/")[2])
    number = key.removesuffix(".0")
    return number.lstrip("0") or "0" if number.isdecimal() else key


def find_table_joins_of_log(files: Sequence[str], opened: OpenRowsOfEachFile) -> LogJoins | None:
    """Return how the tables of some files are joined; None where one alone has rows, or nothing joins them."""
    try:
        tables = _sample_tables(files, opened())
        log = _find_log_table(tables, alone=len(files) == 1)
        beside = [table for table in tables if table is not log]
        if log is None or not _read_all_rows(log, beside, opened()):
            return None
    except PollexError:  # the reading itself says it
        return None

    # the keys that the log has: its columns, and its files where it has several
    keys = dict(log.keys)
    if len(log.sources) > 1:
        keys[FILE_NAME_AS_KEY_COLUMN] = {normalize_key_value(source) for source in log.sources}

    owners = dict.fromkeys(keys, log)
    joins: list[TableJoin] = []
    # the best join first; the columns that it brings may be keys of the next
    while (best := _find_best_join(beside, keys, owners, log)) is not None:
        table, key = best
        join = _build_join(table, key, keys)
        joins.append(join)
        beside.remove(table)
        for path, values in _collect_key_values(table).items():
            if path in join.names:
                keys[join.names[path]] = values
                owners[join.names[path]] = table

    # tables of one database that meet nothing are idle; other files stay logs
    idle = beside if len(files) == 1 else []
    if not joins and not idle:
        return None

    log_keys = {join.key.of_log: frozenset(keys[join.key.of_log]) for join in joins}
    return LogJoins(frozenset(log.sources), joins, log_keys, idle)


def _sample_tables(files: Sequence[str], sources: Iterable[RowsOfFile]) -> list[SourceTable]:
    """Return the tables of some files with their first rows, those of the same columns as one."""
    gathered: list[SourceTable] = []
    of_source: dict[str, SourceTable] = {}
    for file, rows in zip(files, sources, strict=True):
        # where a file is one table, its first rows say which
        if may_hold_several_tables([file]):
            looked_at = rows
        else:
            looked_at = islice(rows, SAMPLE_ROWS_PER_TABLE)

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
                    table = SourceTable([])
                    gathered.append(table)
                of_source[row.source] = table
                table.sources.append(row.source)

            if len(table.rows) < SAMPLE_ROWS_PER_TABLE:
                table.rows.append(row.fields)

    return gathered


def _find_log_table(tables: Sequence[SourceTable], *, alone: bool) -> SourceTable | None:
    """Return the one table that has what was said; None where there are several, or tables that tools write.

    Args:
        alone: Whether all are in one file, where a table that looks like a tool's is none.
    """
    if not 1 < len(tables) <= MAX_TABLES:
        return None

    # most of a talk first, then columns of speakers, then the longest texts
    log = max(
        tables,
        key=lambda table: (table.rank, table.has_speakers, _measure_longest_column(table)),
    )
    others = []
    for table in tables:
        if table is not log:
            others.append(table)

    # exports of tools have readers of their own, and two logs aren't joined
    exports = []
    for table in others:
        if _is_table_of_known_export(table) and not (
            _is_table_of_thumbs(table) and _has_unknown_shape(log)
        ):
            exports.append(table)

    if _is_table_of_known_export(log) or (not alone and exports):
        return None
    if not log.rank or any(map(_is_log_table, others)):
        return None
    return log


def _read_all_rows(
    log: SourceTable,
    beside: Sequence[SourceTable],
    sources: Iterable[RowsOfFile],
) -> bool:
    """Take all rows of the tables beside a log, and all keys of the log; return whether they could be held."""
    of_source = {}
    for table in beside:
        for source in table.sources:
            of_source[source] = table

    log_sources = set(log.sources)
    paths = []
    for column in log.columns:
        if _may_be_key_column(column):
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
                log.keys[path].add(normalize_key_value(find_value_at_path(row.fields, path)))
        elif (other := of_source.get(row.source)) is not None:
            other.rows.append(row.fields)
            if len(other.rows) > MAX_JOINED_ROWS:
                return False

        if rows_of_log > MAX_LOG_ROWS:
            return False

    # a key has several values
    fewest = min(MIN_KEY_VALUES, 0.5 * rows_of_log)
    key_values = {}
    for path, values in log.keys.items():
        if len(values) >= fewest:
            key_values[path] = values - {""}

    log.keys = key_values
    return True


def _is_table_of_known_export(table: SourceTable) -> bool:
    # rows of a service of logs carry those of an export
    first_rows = (extract_carried_row(row) or row for row in islice(table.rows, 3))
    return any(find_export_format(row) is not None for row in first_rows)


def _is_table_of_thumbs(table: SourceTable) -> bool:
    """Return whether a table has thumbs under usual names, which join a log of any shape."""
    return all(map(is_vote_row, islice(table.rows, 3)))


def _has_unknown_shape(log: SourceTable) -> bool:
    """Return whether no reader knows the rows of a log, and none could take thumbs for them."""
    return not any(has_spoken_words(row) for row in islice(log.rows, 3))


def _is_log_table(table: SourceTable) -> bool:
    """Return whether a table is a log itself, and nothing beside one."""
    return table.rank == RANK_OF_TABLE_WITH_CONVERSATIONS or (
        table.rank == RANK_OF_TABLE_WITH_TURNS and table.has_speakers
    )


def _measure_longest_column(table: SourceTable) -> int:
    return max((sum(map(len, column.texts)) for column in table.columns), default=0)


def _get_table_name(source: str) -> str:
    name = Path(source).name
    for sign in ("!", ":"):
        name = name.rpartition(sign)[2] or name
    return name


def _collect_key_values(table: SourceTable) -> dict[str, set[str]]:
    """Return the values of the columns of a table that may be keys."""
    paths = []
    for column in table.columns:
        if _may_be_key_column(column):
            paths.append(column.path)

    gathered: dict[str, set[str]] = {}
    for path in paths:
        values = {normalize_key_value(find_value_at_path(row, path)) for row in table.rows} - {""}
        if len(values) >= min(MIN_KEY_VALUES, 0.5 * len(table.rows)):
            gathered[path] = values

    return gathered


def _may_be_key_column(column: Column) -> bool:
    if "[]" in column.path or not column.filled or column.times > 0.8:
        return False
    if is_named_as_part(column.path, "time") and not is_named_as_part(column.path, "conversation"):
        return False

    filled = []
    for value in column.values:
        if value not in (None, ""):
            filled.append(value)

    short = all(isinstance(value, str | int | float) and len(str(value)) <= 120 for value in filled)
    is_id = bool(_KEY_NAME_WORDS & {*split_name_words(column.path)})  # a file's name may be words
    return (
        short
        and estimate_label_likelihood(column) == 0
        and (is_id or estimate_text_likelihood(column) < 0.5)
    )


def _find_best_join(
    tables: Sequence[SourceTable],
    keys: Mapping[str, set[str]],
    owners: Mapping[str, SourceTable],
    log: SourceTable,
) -> tuple[SourceTable, JoinKey] | None:
    """Return the table that joins best, and its key; None where none does."""
    gathered = []
    for table in tables:
        if (key := _find_join_key(table, keys, owners, log)) is not None:
            gathered.append((table, key))

    return max(gathered, key=lambda pair: pair[1].score, default=None)


def _find_join_key(
    table: SourceTable,
    keys: Mapping[str, set[str]],
    owners: Mapping[str, SourceTable],
    log: SourceTable,
) -> JoinKey | None:
    """Return by which column a table meets the log, rather a column of its own than one brought to it."""
    gathered = []
    for path, values in _collect_key_values(table).items():
        for of_log, others in keys.items():
            shared = len(values & others)
            # both have this share of the smaller set of values
            share = shared / min(len(values), len(others))
            alike = _measure_name_likeness(
                path,
                table,
                of_log,
                owners.get(of_log, table),
            )
            # small numbers meet by chance, unless the names are alike
            counted = all(value.isdecimal() and len(value) < 7 for value in islice(values, 50))
            if shared < 2 or share < MIN_KEY_OVERLAP or (counted and not alike):
                continue
            # the log's own column goes before one that another table brought
            brought = PENALTY_FOR_KEY_OF_JOINED_TABLE if owners.get(of_log) is not log else 0.0
            gathered.append(JoinKey(path, of_log, alike + share - brought, shared))

    return max(gathered, key=lambda key: key.score, default=None)


def _measure_name_likeness(
    path: str,
    table: SourceTable,
    of_log: str,
    other: SourceTable,
) -> float:
    """Return how much two names say that they name the same: `message_id`, and `id` of a table of messages."""
    if of_log == FILE_NAME_AS_KEY_COLUMN:
        return 1.0

    words = _list_naming_words(path)
    others = _list_naming_words(_remove_table_prefix(of_log, other))
    if remove_accents(path) == remove_accents(of_log) and words:
        return 1.0
    # an id is named after its table: of all its words, or of some
    if words & others or (not others and words == other.words):
        return 1.0
    if not words and others == table.words:
        return 1.0
    if (not others and words & other.words) or (not words and others & table.words):
        return 0.8
    # who sent a message is one of the people of a table
    if not words and is_named_after_people(table.name) and _is_named_after_person(of_log):
        return 0.8

    both = all(is_named_as_part(name, "conversation") for name in (path, of_log))
    return 0.5 if both else 0.0


def _remove_table_prefix(column: str, table: SourceTable) -> str:
    """Return a column's own name, without the table's that was put before it."""
    return column.removeprefix(f"{Path(table.name).stem}.")


def _is_named_after_person(column: str) -> bool:
    return is_named_as_part(column, "role") or is_named_after_people(column)


def _list_naming_words(name: str) -> set[str]:
    """Return the words of a key's name that say what it names."""
    return {word.removesuffix("s") for word in split_name_words(name)} - _KEY_NAME_WORDS


def _build_join(
    table: SourceTable,
    key: JoinKey,
    keys: Mapping[str, set[str]],
) -> TableJoin:
    """Return a table as it is joined; its columns keep their names where the log has none of that name."""
    columns = []
    for column in table.columns:
        if column.path != key.own:
            columns.append(column)

    rows_of_key: dict[str, list[JsonObject]] = {}
    for row in table.rows:
        rows_of_key.setdefault(normalize_key_value(find_value_at_path(row, key.own)), []).append(
            row
        )

    several = any(len(rows) > 1 for rows in rows_of_key.values())
    top_level = dict.fromkeys(name for row in table.rows[:SAMPLE_ROWS_PER_TABLE] for name in row)
    # the names that its columns get in the log's rows
    stem = Path(table.name).stem
    # several rows of a key make lists, which can't be the log's judge
    of_raters = frozenset(JUDGE_FIELD_NAMES if several else ())
    names = {}
    for name in top_level:
        if name != key.own:
            names[name] = (
                name
                if _keeps_column_name(name) and name not in {*keys, *of_raters}
                else f"{stem}.{name}"
            )

    by_key = {}
    for value, rows in rows_of_key.items():
        if value:
            by_key[value] = _merge_joined_fields(rows, names)

    # what in it may be the label
    labels = []
    for column in columns:
        if column.path in names and (
            estimate_label_likelihood(column) > 0 or is_ambiguous_label_column(column)
        ):
            labels.append(names[column.path])

    has_label = any(is_label_column_name(name) for name in names)
    return TableJoin(
        table,
        key,
        names,
        by_key,
        labels,
        ROW_OUTCOME_LABELS if labels or has_label else ROW_OUTCOME_ABOUT_CONVERSATIONS,
    )


def _keeps_column_name(name: str) -> bool:
    """Return whether a column's name says what it is of the log: a label, a comment, or who asked."""
    says = is_label_column_name(name) or is_rater_column_name(name) or is_named_as_comment(name)
    return says or is_named_after_people(name)


def _merge_joined_fields(rows: Sequence[JsonObject], names: Mapping[str, str]) -> JsonDict:
    """Return the fields of the rows of a key; a list where there are several rows."""
    fields: JsonDict = {}
    for name, new in names.items():
        values = [row.get(name) for row in rows]
        if len(rows) == 1:
            fields[new] = values[0]
        else:
            fields[new] = values if any(value not in (None, "") for value in values) else None

    return fields
