"""A store in which somebody changed a value is told to be damaged, by pages and by commands."""

import sqlite3
from contextlib import closing

import duckdb
import pytest
from small_runs import run_here
from web_site import client_of, made_app

from pollex.errors import StoreDamaged
from pollex.store.database import DATABASE_FILE_NAME
from pollex.store.soundness import check_whole_store, find_damage_behind_error
from pollex.store.store import Store

HTML = {"accept": "text/html"}
CHANGES = {
    "a time of digits": "UPDATE runs SET started = '99999999999999999999'",
    "a time that is none": "UPDATE runs SET finished = '9e999'",
    "JSON for a time": """UPDATE runs SET started = '{"a": 1}'""",
    "a month too many": "UPDATE runs SET started = '2026-13-01T00:00:00+00:00'",
    "a list for a table": "UPDATE runs SET arguments = '[1]'",
    "bytes for figures": "UPDATE spans SET ms = x'00ff'",
    "a text for figures": "UPDATE spans SET ms = 'x'",
    "bytes for results": "UPDATE facts SET payload = x'7b7d'",
    "other results": "UPDATE facts SET payload = '[5]'",
    "bytes for ids": "UPDATE facts SET id = x'00'",
    "inputs that are none": "UPDATE spans SET inputs = '{'",
    "no figures": "UPDATE spans SET ms = NULL",
    "no ids": "UPDATE spans SET id = NULL",
    "a number for progress": (
        "INSERT OR REPLACE INTO progress"
        " SELECT id, 1, '2026-01-01T00:00:00+00:00', '9e999' FROM runs"
    ),
    "bytes for names": "INSERT INTO annotators VALUES ('a', x'00', 'd', x'00', '/')",
}


def changed(store: Store, sql: str) -> None:
    store.flush()
    with closing(sqlite3.connect(store.folder / DATABASE_FILE_NAME)) as database:
        database.execute(sql)
        database.commit()


@pytest.mark.parametrize("kind", CHANGES)
async def test_pages_of_a_store_that_somebody_changed_say_so(own: Store, kind: str) -> None:
    own.flush()
    check_whole_store(own)
    changed(own, CHANGES[kind])
    with pytest.raises(StoreDamaged):
        check_whole_store(own)
    pages = ["/", "/runs", "/conversations", "/pass-on", "/sets", "/label", "/at-work"]
    run = own.value("SELECT id FROM runs")
    async with client_of(made_app(own)) as client:
        for page in (*pages, f"/runs/{run}", f"/api/runs/{run}/spans"):
            answer = await client.get(page, headers=HTML)
            assert answer.status_code != 500, (page, answer.text[-300:])


def test_what_nobody_expected_is_damage_only_where_the_store_is_damaged(own: Store) -> None:
    own.flush()
    assert find_damage_behind_error(own, TypeError()) is None
    changed(own, CHANGES["bytes for figures"])
    for error in (None, KeyboardInterrupt(), StoreDamaged("x"), OSError(), MemoryError()):
        assert find_damage_behind_error(own, error) is None
    damage = find_damage_behind_error(own, TypeError())
    assert damage is not None
    assert "ms of spans has what pollex doesn't write" in str(damage)


@pytest.mark.parametrize("kind", ["a time of digits", "bytes for figures"])
def test_commands_on_a_store_that_somebody_changed_say_so(own: Store, kind: str) -> None:
    changed(own, CHANGES[kind])
    for verb in (("runs",), ("trace", "last")):
        ended = run_here(*verb, "--store", own.folder)
        assert "unexpected" not in ended.err, verb
    assert "the store is damaged" in ended.err or ended.code == 0


def test_columns_of_a_run_that_are_not_ours_are_damage(own: Store) -> None:
    own.flush()
    (part, *_) = sorted((own.folder / "runs").glob("*/conversations-*.parquet"))
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 5 AS x) TO '{part}' (FORMAT parquet)")
    with pytest.raises(StoreDamaged, match="it has no column"):
        check_whole_store(own)
    ended = run_here("trace", "last", "--store", own.folder, "--conversation", "c1")
    assert "unexpected" not in ended.err, ended.err
