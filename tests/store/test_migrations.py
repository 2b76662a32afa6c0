"""Stores of other versions: an older one is copied and brought up to date, a newer one is left as it is."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import duckdb
import pytest

from pollex.errors import StoreDamaged, WrongUse
from pollex.store import database, migrations
from pollex.store.ledger import StoreLedger
from pollex.store.store import Store
from pollex.store.tables import ROWS


def m99_colours(connection: duckdb.DuckDBPyConnection) -> None:
    """A migration of the future: a column with content, and a table."""
    connection.execute("ALTER TABLE scores ADD COLUMN colour VARCHAR DEFAULT 'grey'")
    connection.execute("CREATE TABLE colours (name VARCHAR)")


@pytest.fixture
async def older(folder: Path) -> Path:
    """A store of this version, with a paid answer and a run."""
    with Store.open(folder) as store:
        await StoreLedger(store).record("a", 1, {}, "paid")
        store.begin("learn", arguments={}, fingerprint={}, versions={})
    return folder


@pytest.fixture
def future(older: Path) -> Iterator[None]:
    """The history, after `older` was made, with one migration more; after the test it is what it was."""
    migrations.migration(m99_colours)
    yield
    del migrations.MIGRATIONS["m99_colours"]


def test_the_tables_have_the_columns_that_the_rows_have(folder: Path) -> None:
    with Store.open(folder) as store:
        for row in ROWS:
            columns = store.rows("SELECT column_name AS name FROM duckdb_columns() WHERE table_name = ?", [row.table])
            assert [column["name"] for column in columns] == [field.name for field in fields(row)]


@pytest.mark.usefixtures("future")
def test_an_older_store_is_copied_and_brought_up_to_date_once(older: Path) -> None:
    before = (older / "store.duckdb").read_bytes()
    with Store.open(older) as store:
        assert "as it was before it is kept as store.duckdb.before.m99_colours" in store.notices[0]
        assert store.value("SELECT count(*) FROM ledger") == 1
        assert store.value("SELECT count(*) FROM colours") == 0
        names = [row["name"] for row in store.rows("SELECT name FROM migrations ORDER BY rowid")]
        assert names == ["m01_tables", "m99_colours"]
    assert (older / "store.duckdb.before.m99_colours").read_bytes() == before
    with Store.open(older) as store:
        assert store.notices == []


@pytest.mark.usefixtures("future")
def test_a_reader_does_not_migrate(older: Path) -> None:
    with pytest.raises(WrongUse, match="an older pollex made this store"):
        Store.open(older, read_only=True)
    assert not (older / "store.duckdb.before.m99_colours").exists()


def test_a_migration_that_is_killed_half_way_is_repeated(older: Path, child) -> None:
    ended = child("""
from pollex.store import migrations
def m99_colours(connection):
    connection.execute("CREATE TABLE colours (name VARCHAR)")
    connection.execute("DROP TABLE ledger")
    die()
migrations.migration(m99_colours)
Store.open(folder)
""")
    assert ended.returncode == -signal.SIGKILL
    kept = (older / "store.duckdb.before.m99_colours").read_bytes()
    migrations.migration(m99_colours)
    try:
        with Store.open(older) as store:
            assert store.value("SELECT count(*) FROM ledger") == 1
            assert store.value("SELECT count(*) FROM colours") == 0
    finally:
        del migrations.MIGRATIONS["m99_colours"]
    assert (older / "store.duckdb.before.m99_colours").read_bytes() == kept


def test_a_newer_store_is_refused_untouched_and_both_versions_are_named(older: Path, child) -> None:
    child("""
from pollex.store import migrations
def m99_colours(connection):
    connection.execute("CREATE TABLE colours (name VARCHAR)")
migrations.migration(m99_colours)
Store.open(folder).begin("learn", arguments={}, fingerprint={}, versions={})
die()
""")
    files = {file: file.read_bytes() for file in older.iterdir() if file.name != "lock"}
    assert older / "store.duckdb.wal" in files
    with pytest.raises(WrongUse, match=r"schema 2 \(m99_colours\), and pollex .* knows schemas up to 1 \(m01_tables\)"):
        Store.open(older)
    assert {file: file.read_bytes() for file in older.iterdir() if file.name != "lock"} == files


def test_a_file_that_only_a_newer_duckdb_can_read_is_refused_untouched(older: Path) -> None:
    path = older / "store.duckdb"
    content = bytearray(path.read_bytes())
    assert checksum(content[8:4096]) == int.from_bytes(content[:8], "little"), "DuckDB's checksum is another now"
    content[12:20] = (1_000_000).to_bytes(8, "little")
    content[:8] = checksum(content[8:4096]).to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(StoreDamaged, match="install the newer DuckDB; the store was left as it is"):
        Store.open(older)
    assert path.read_bytes() == bytes(content)


def test_an_older_duckdb_is_refused_before_any_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database.duckdb, "__version__", "1.4.4")
    with pytest.raises(WrongUse, match=r"DuckDB 1\.4\.4 is installed, and the store needs 2\.x"):
        Store.open(folder)
    assert not (folder / "store.duckdb").exists()


def checksum(block: bytes | bytearray) -> int:
    """DuckDB's checksum of a block whose length is a multiple of eight."""
    result = 5381
    for start in range(0, len(block), 8):
        word = int.from_bytes(block[start : start + 8], "little")
        result ^= (word * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    return result
