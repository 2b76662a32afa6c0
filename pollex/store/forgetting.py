"""Taking conversations out of a store for good: rows, lines, columns, caches, and what free pages still hold."""

import itertools
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pollex.conversations.redaction import make_pseudonym
from pollex.errors import StoreBusy
from pollex.store.columns import (
    RUNS_FOLDER_NAME,
    TEXTS_FOLDER_NAME,
    list_abandoned_drafts,
    list_parts_of_folder,
)
from pollex.store.database import BACKUP_FILE_NAME, CHECKPOINTS_FILE_NAME, DATABASE_FILE_NAME
from pollex.store.folder import remove_copies_and_caches
from pollex.store.fragments import ConversationFragments
from pollex.store.outputs import OUTPUT_FACT_KIND
from pollex.store.runs import is_run_worked_on
from pollex.store.store import Store
from pollex.store.tables import FactRow, dump_json, load_json

CONVERSATION_ID_FIELDS = (
    "conversation_id",
    "conversation",
    "item",
    "id",
    "traceId",
    "trace_id",
    "sessionId",
    "session_id",
)
"""Names under which an entry of a list says of which conversation it is."""
MAX_WHOLLY_FORGOTTEN_CHARS = 200
"""Characters of a text of which nothing is left once a run of its words tells; of a longer one the line goes."""
USER_METADATA_FIELDS = (
    "user",
    "user_id",
    "userId",
    "user_name",
    "username",
    "customer",
    "customer_id",
    "email",
)
"""Fields of a conversation's metadata that say whose it is."""

_TABLES_BY_CONVERSATION = ("labels", "leases", "replays", "originals", "chosen")
_COLUMNS_WITHOUT_TEXTS = frozenset(
    {"id", "run", "key", "digest", "text_hash", "crc", "time", "started", "finished", "status"}
)
"""Columns that hold nothing of what was said."""
_DATABASE_DRAFT_NAME_REGEX = re.compile(
    rf"\.({re.escape(DATABASE_FILE_NAME)}|{re.escape(BACKUP_FILE_NAME)}\.[0-9a-f]+)\.draft"
)
"""Names of what a killed rebuild or backup left."""


@dataclass(frozen=True)
class ForgettingTarget:
    """Conversations to forget.

    Attributes:
        hashes: Of texts that no other conversation has.
        traces: What tells that another text quotes them.
        stored_rows: Rows of them that runs of the store keep.
        runs: Those that keep them.
    """

    ids: frozenset[str]
    hashes: frozenset[str]
    texts: tuple[str, ...]
    traces: ConversationFragments
    stored_rows: int
    runs: frozenset[str] = frozenset()

    def cleaned(self, value: object) -> Any:
        """Return a JSON value without them: entries about them go, and texts that quote them are replaced."""
        if isinstance(value, dict):
            cleaned_fields = {}
            for name, inner in value.items():
                if name not in self.ids:
                    cleaned_fields[name] = self.cleaned(inner)

            return cleaned_fields
        if isinstance(value, list):
            return [self.cleaned(inner) for inner in value if not self.is_about(inner)]
        if isinstance(value, str):
            return self.masked(value)
        return value

    def masked(self, text: str) -> str:
        """Return a text without them, line by line where it is long."""
        if not self.traces.within(text):
            return text
        if len(text) <= MAX_WHOLLY_FORGOTTEN_CHARS:
            return self.traces.masked(text)
        return self.traces.masked(
            "".join(self.traces.masked(line) for line in text.splitlines(keepends=True))
        )

    def is_about(self, value: object) -> bool:
        """Tell whether an entry of a list is of one of them."""
        if isinstance(value, dict):
            return any(
                isinstance(value.get(name), str) and value[name] in self.ids
                for name in CONVERSATION_ID_FIELDS
            )
        return isinstance(value, str) and value in self.ids


def find_conversations_to_forget(
    store: Store,
    ids: Collection[str],
    users: Collection[str],
) -> ForgettingTarget:
    """Find what is to be forgotten: conversations by id, and all of some users.

    Args:
        users: Values of the group field, or of a field of the metadata that names the user.
    """
    forgotten_ids = set(ids)
    user_names = set(users) | {make_pseudonym(user) for user in users}
    others = set[str]()
    hashes: set[str] = set()
    # all conversations of all runs, and those among them that are to go
    folder = store.folder / RUNS_FOLDER_NAME
    if folder.exists():
        runs = [path.name for path in folder.iterdir()]
    else:
        runs = []

    rows = []
    for run in runs:
        for row in store.ask(run, "SELECT * EXCLUDE (seq) FROM conversations"):
            rows.append({**row, "of": run})

    for row in rows:
        names_user = user_names and user_names & _list_users_in_metadata(row["metadata"])
        if row["group"] in user_names or names_user:
            forgotten_ids.add(row["id"])

    forgotten_rows = []
    for row in rows:
        if row["id"] in forgotten_ids:
            forgotten_rows.append(row)

    for row in rows:
        (hashes if row["id"] in forgotten_ids else others).add(row["text_hash"])

    # What tells of them is what they said and wrote, and no other conversation has.
    if hashes:
        texts = store.ask("any", "SELECT text_hash, turns FROM texts")
    else:
        texts = []

    forgotten_texts: list[str] = []
    for row in forgotten_rows:
        forgotten_texts.extend(_iterate_feedback_texts(row.get("feedback")))

    for row in texts:
        if row["text_hash"] in hashes:
            forgotten_texts.extend(_iterate_words_of_turns(row["turns"]))

    other_texts = (row["turns"] for row in texts if row["text_hash"] not in hashes)
    rest = itertools.chain.from_iterable(map(_iterate_words_of_turns, other_texts))

    # an id that is part of another one can't be looked for
    other_ids = []
    for row in rows:
        if row["id"] not in forgotten_ids:
            other_ids.append(row["id"])

    names = set(users)
    for id_ in forgotten_ids:
        if not any(id_ in other for other in other_ids):
            names.add(id_)

    traces = ConversationFragments(forgotten_texts, rest, names)
    of_runs = frozenset(row["of"] for row in forgotten_rows)
    return ForgettingTarget(
        frozenset(forgotten_ids),
        frozenset(hashes - others),
        tuple(forgotten_texts),
        traces,
        len(forgotten_rows),
        of_runs,
    )


def _iterate_words_of_turns(turns: str) -> Iterator[str]:
    for _, content, *tools in load_json(turns):
        yield content
        for tool in tools:
            for call in tool.get("calls", ()):
                if "arguments" in call:
                    yield call["arguments"]


def _iterate_feedback_texts(feedback: str | None) -> Iterator[str]:
    for entry in load_json(feedback or "[]"):
        yield from filter(None, [entry.get("comment"), *entry.get("tags", ())])


def _list_users_in_metadata(metadata: str) -> set[str]:
    values = load_json(metadata) if metadata else {}
    users: set[str] = set()
    for name in USER_METADATA_FIELDS:
        if isinstance(values, dict) and values.get(name) is not None:
            users.add(str(values[name]))

    return users


def require_idle_store(folder: Path) -> None:
    """Refuse a store that is being worked on.

    Raises:
        StoreBusy: A run goes on in it.
    """
    for run in (folder / RUNS_FOLDER_NAME).glob("*"):
        if is_run_worked_on(folder / RUNS_FOLDER_NAME, run.name):
            raise StoreBusy(
                f"{run.name} is running",
                where=str(folder),
                hint="wait until it ends",
            )


def delete_conversations_from_store(store: Store, target: ForgettingTarget) -> dict[str, int]:
    """Take conversations out of a store; return how many rows of what went.

    Columns go first: as long as the database names a conversation, doing it again finishes what was
    broken off.
    """
    store.flush()
    gone = dict(_delete_from_columns(store, target))
    gone |= store.transact(lambda connection: _delete_from_database(connection, target))
    store.database.compact()
    store.columns.close()
    (store.folder / BACKUP_FILE_NAME).unlink(missing_ok=True)
    store.backup()
    # states quote conversations; a run goes on by its results without
    for ending in ("", "-wal", "-shm"):
        (store.folder / f"{CHECKPOINTS_FILE_NAME}{ending}").unlink(missing_ok=True)

    remove_copies_and_caches(store.folder)
    return {name: count for name, count in gone.items() if count}


def _delete_from_columns(store: Store, target: ForgettingTarget) -> Iterator[tuple[str, int]]:
    folder = store.folder
    of = {"conversations": ("id", target.ids), "texts": ("text_hash", target.hashes)}
    parts_of_runs = []
    for run in (folder / RUNS_FOLDER_NAME).glob("*"):
        for part in list_parts_of_folder(run):
            parts_of_runs.append((part, part.pile.name))

    counts: Counter[str] = Counter()
    for part, table in [
        *parts_of_runs,
        *((part, "texts") for part in list_parts_of_folder(folder / TEXTS_FOLDER_NAME)),
    ]:
        column, values = of.get(table, ("conversation", target.ids))
        counts[table] += store.columns.drop(part, column, sorted(values))

    piles = [*(folder / RUNS_FOLDER_NAME).glob("*"), folder / TEXTS_FOLDER_NAME]
    for draft in [path for pile in piles for path in list_abandoned_drafts(pile)]:
        draft.unlink()

    for draft in folder.glob(".*.draft"):
        if _DATABASE_DRAFT_NAME_REGEX.fullmatch(draft.name):
            draft.unlink()

    yield from counts.items()


def _delete_from_database(
    connection: sqlite3.Connection, target: ForgettingTarget
) -> dict[str, int]:
    gone: dict[str, int] = {}
    _stage_values_in_table(connection, "forgotten_ids", target.ids)
    _stage_values_in_table(connection, "forgotten_hashes", target.hashes)

    for table in _TABLES_BY_CONVERSATION:
        where = "conversation IN (SELECT value FROM forgotten_ids)"
        if table != "replays":
            where += " OR text_hash IN (SELECT value FROM forgotten_hashes)"
        gone[table] = connection.execute(f"DELETE FROM {table} WHERE {where}").rowcount

    connection.execute("DELETE FROM sheets WHERE label NOT IN (SELECT id FROM labels)")
    gone["spans"] = connection.execute(
        "DELETE FROM spans WHERE item IN (SELECT value FROM forgotten_ids)"
    ).rowcount
    where = "kind = 'extraction' AND id IN (SELECT value FROM forgotten_ids)"
    gone["facts"] = connection.execute(f"DELETE FROM facts WHERE {where}").rowcount
    gone["calls"] = _delete_calls_of_conversations(connection, target)
    rewritten = 0
    for table, columns in _iterate_text_columns(connection):
        rewritten += _rewrite_quoting_rows(connection, table, columns, target)
    gone["rewritten"] = rewritten
    connection.execute("DROP TABLE forgotten_ids")
    connection.execute("DROP TABLE forgotten_hashes")

    return gone


def _stage_values_in_table(
    connection: sqlite3.Connection,
    name: str,
    values: Collection[str],
) -> None:
    connection.execute(f"CREATE TEMP TABLE {name} (value TEXT PRIMARY KEY)")
    connection.executemany(
        f"INSERT INTO {name} VALUES (?)",
        [[value] for value in values],
    )


def _delete_calls_of_conversations(connection: sqlite3.Connection, target: ForgettingTarget) -> int:
    keys = set()
    for (key,) in connection.execute(
        "SELECT key FROM calls WHERE item IN (SELECT value FROM forgotten_ids)"
    ):
        keys.add(key)

    for table, text in (("calls", "reply"), ("requests", "body")):
        for key, content in connection.execute(
            f"SELECT key, {text} FROM {table} WHERE {text} IS NOT NULL"
        ):
            if key not in keys and any(map(target.traces.within, _iterate_json_strings(content))):
                keys.add(key)

    for table in ("calls", "requests", "batched"):
        connection.executemany(
            f"DELETE FROM {table} WHERE key = ?",
            [[key] for key in keys],
        )

    return len(keys)


def _iterate_json_strings(text: str) -> Iterator[str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        yield text
        return

    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            # a text may hold JSON itself
            yield from _iterate_json_strings(inner) if inner[:1] in ("{", "[") else (inner,)
        elif isinstance(inner, dict):
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner


def _iterate_text_columns(connection: sqlite3.Connection) -> Iterator[tuple[str, list[str]]]:
    """Yield each table with its columns of text: whichever they are, none may quote them."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        names = []
        for _, name, type_, *_ in columns:
            if type_ == "TEXT" and name not in _COLUMNS_WITHOUT_TEXTS:
                names.append(name)

        if names and not table.startswith("sqlite_"):
            yield table, names


def _rewrite_quoting_rows(
    connection: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    target: ForgettingTarget,
) -> int:
    changed = 0
    outputs = f"WHERE kind != '{OUTPUT_FACT_KIND}'" if table == "facts" else ""
    rows = connection.execute(f"SELECT rowid, {', '.join(columns)} FROM {table} {outputs}")
    for rowid, *texts in rows.fetchall():
        cleaned = [_remove_quotes_from_cell(text, target) for text in texts]
        if cleaned != texts:
            changed += 1
            payload = dict(zip(columns, cleaned, strict=True)).get("payload") or ""
            crc = ""
            if table == "facts":
                crc = f", crc = {FactRow('', '', '', payload).values[-1]}"
            places = ", ".join(f"{column} = ?" for column in columns)
            connection.execute(
                f"UPDATE {table} SET {places}{crc} WHERE rowid = ?",
                [*cleaned, rowid],
            )

    return changed


def _remove_quotes_from_cell(text: str | None, target: ForgettingTarget) -> str | None:
    """Return the text of a cell without them: JSON stays JSON, and as it was written if nothing goes."""
    if not text:
        return text

    try:
        value = json.loads(text)
        cleaned = target.cleaned(value)
    except (ValueError, RecursionError):  # a stranger's store may hold anything
        return target.masked(text)

    if cleaned == value:
        return text
    return dump_json(cleaned)


def list_unforgotten_files(folder: Path, target: ForgettingTarget) -> list[Path]:
    """Return files of a store that nobody could take them out of: those that a rebuild kept."""
    odd = []
    for path in folder.rglob("*"):
        if path.is_file() and re.search(r"\.(damaged|earlier)\.\d", path.name):
            odd.append(path)

    files: list[Path] = []
    for path in odd:
        if path.suffix == ".parquet" or target.traces.within(_decode_database_text(path)):
            files.append(path)

    return files


def _decode_database_text(path: Path) -> str:
    """Return what stands in a database, with escapes of JSON as the characters that they stand for."""
    text = path.read_bytes().decode("utf-8", "replace")
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|.)",
        lambda match: chr(int(match[1], 16)) if match[1] else " ",
        text,
    )
