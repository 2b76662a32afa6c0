"""Stores that a stranger changed: rows of checkpoints that would run code, or that no run wrote."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack

TOUCH = "import pathlib; pathlib.Path({canary!r}).touch()"


def call(module: str, name: str, value: Any, *, code: int = 0) -> bytes:
    """What LangGraph's serializer takes for a call of `module.name` with a value."""
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb((module, name, value))))


def calls_of(canary: Path) -> dict[str, tuple[str, bytes]]:
    """By name, kind and content of values that leave a file behind when they are read as LangGraph reads them."""
    words = f"touch {canary}"
    code = TOUCH.format(canary=str(canary))
    reduced = b"cos\nsystem\n(V" + words.encode() + b"\ntR."
    revived = {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": [words]}
    method = ormsgpack.packb(("builtins", "exec", code, "__call__"))
    within = ormsgpack.packb(
        ("builtins", "set", [ormsgpack.Ext(0, ormsgpack.packb(("os", "system", words)))])
    )
    return {
        "a call with one value": ("msgpack", call("os", "system", words)),
        "a call with several": ("msgpack", call("os", "system", [words], code=1)),
        "a call with named ones": ("msgpack", call("os", "system", {"command": words}, code=2)),
        "a method": ("msgpack", ormsgpack.packb(ormsgpack.Ext(3, method))),
        "a model of pydantic": ("msgpack", call("builtins", "exec", {"source": code}, code=5)),
        "a call within a set": ("msgpack", ormsgpack.packb(ormsgpack.Ext(0, within))),
        "a pickle": ("pickle", reduced),
        "an object of LangChain's": ("json", json.dumps(revived).encode()),
    }


def damages() -> dict[str, tuple[str, bytes]]:
    """By name, kind and content of values that no run writes."""
    deep = b"\x91" * 900 + b"\xc0"
    state = {
        "v": 4,
        "id": "1",
        "ts": "",
        "channel_values": {"kept": 5},
        "channel_versions": {},
        "versions_seen": {},
    }
    return {
        "another kind": ("yaml", b"a: 1"),
        "cut": ("msgpack", b"\x82\xa1v"),
        "no text": ("msgpack", b"\xa3\xff\xfe\xfd"),
        "nested without end": ("msgpack", deep),
        "no state": ("msgpack", ormsgpack.packb([1, 2])),
        "nothing": ("msgpack", b""),
        "a state without channels": ("msgpack", ormsgpack.packb({"v": 4, "id": "1"})),
        "a pool that is a number": ("msgpack", ormsgpack.packb(state)),
        "a list of nothings": ("msgpack", ormsgpack.packb([None] * 100_000)),
        "null": ("null", b""),
        "a date": ("msgpack", call("datetime", "date", [2020, 1, 1], code=1)),
    }


def change(store: Path, sql: str, values: tuple[Any, ...] = ()) -> None:
    """Change the checkpoints of a store by hand."""
    with closing(sqlite3.connect(store / "checkpoints.sqlite")) as database:
        assert database.execute(sql, values).rowcount, "a row is there to be changed"
        database.commit()


def in_checkpoints(store: Path, kind: str, content: bytes) -> None:
    """Put a value in place of every state."""
    change(store, "UPDATE checkpoints SET type = ?, checkpoint = ?", (kind, content))


def in_writes(store: Path, kind: str, content: bytes) -> None:
    """Put a value among what nodes wrote after every state."""
    change(
        store,
        """INSERT OR REPLACE INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel,
        type, value) SELECT thread_id, checkpoint_ns, checkpoint_id, 'a', '', 99, 'kept', ?, ? FROM checkpoints""",
        (kind, content),
    )


PLACES: dict[str, Callable[[Path, str, bytes], None]] = {
    "checkpoints": in_checkpoints,
    "writes": in_writes,
}


def write_journal_that_removes(other: Path, *, beside: Path) -> None:
    """Write the journal of a broken transaction that names another file as its own: SQLite removes it."""
    page = int.from_bytes(beside.read_bytes()[16:18])
    magic = bytes.fromhex("d9d505f920a163d7")
    numbers = (0, 12345, beside.stat().st_size // page, 512, page)
    head = magic + b"".join(number.to_bytes(4) for number in numbers)
    name = bytes(other)
    end = (1 + (1 << 30) // page).to_bytes(4) + name + len(name).to_bytes(4)
    end += sum(name).to_bytes(4) + magic
    for ending in ("-wal", "-shm"):
        beside.with_name(f"{beside.name}{ending}").unlink(missing_ok=True)
    beside.with_name(f"{beside.name}-journal").write_bytes(head.ljust(512, b"\0") + end)
