"""Logs in databases: read, never written, and nothing fetched."""

import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.mapping import parse_name_pairs
from pollex.formats.read_logs import read_logs

ROWS = [
    (f"K-{n}", who, what, note)
    for n, note in enumerate(("gut", "schlecht"))
    for who, what in (("Kunde", "Wo ist es?"), ("Bot", "Hier, sehen Sie."))
]
TABLE = "CREATE TABLE chats(chat_nr TEXT, absender TEXT, nachricht TEXT, note TEXT)"
OPTIONS = ReadOptions(
    columns=parse_name_pairs("conversation=chat_nr,role=absender,text=nachricht,label=note"),
    roles=parse_name_pairs("user=Kunde,assistant=Bot"),
    positive="gut",
    negative="schlecht",
)
DATABASES = ["duckdb", "sqlite", "postgres"]
ON_DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
ABSENT = "PostgreSQL's server isn't installed: apt-get install postgresql"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of Debian's package on a socket of its own, with a password."""
    if not ON_DEBIAN:
        pytest.skip(ABSENT)
    psycopg = pytest.importorskip("psycopg")
    folder = Path("/tmp") / f"pollex-postgres-{os.getpid()}"
    folder.mkdir()
    as_user: list[str] = []
    if os.geteuid() == 0:  # it doesn't run as root
        shutil.chown(folder, "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    secret = folder / "secret"
    secret.write_text("geheim", encoding="utf-8")
    secret.chmod(0o644)
    run = [*as_user, str(ON_DEBIAN[-1])]
    made = (
        "-D",
        f"{folder}/data",
        "-A",
        "scram-sha-256",
        "-U",
        "reader",
        f"--pwfile={secret}",
        "--no-sync",
    )
    subprocess.run([*run, *made], check=True, stdout=subprocess.DEVNULL, cwd="/")
    control = [*as_user, str(ON_DEBIAN[-1].with_name("pg_ctl")), "-D", f"{folder}/data", "-w"]
    started = [
        "-o",
        f"-k {folder} -c listen_addresses='' -c fsync=off",
        "-l",
        f"{folder}/log",
        "start",
    ]
    try:
        subprocess.run([*control, *started], check=True, stdout=subprocess.DEVNULL, cwd="/")
        with psycopg.connect(
            host=str(folder), user="reader", password="geheim", dbname="postgres"
        ) as connection:
            connection.execute(TABLE)
            connection.cursor().executemany("INSERT INTO chats VALUES (%s, %s, %s, %s)", ROWS)
        yield str(folder)
    finally:
        subprocess.run(
            [*control, "-m", "immediate", "stop"], check=False, stdout=subprocess.DEVNULL, cwd="/"
        )
        shutil.rmtree(folder)


def database(kind: str, request: pytest.FixtureRequest) -> str:
    folder: Path = request.getfixturevalue("tmp_path")
    if kind == "duckdb":
        with duckdb.connect(str(folder / "chats.db")) as connection:
            connection.execute(TABLE)
            connection.executemany("INSERT INTO chats VALUES (?, ?, ?, ?)", ROWS)
    elif kind == "sqlite":
        with closing(sqlite3.connect(folder / "chats.db")) as connection:
            connection.execute(TABLE)
            connection.executemany("INSERT INTO chats VALUES (?, ?, ?, ?)", ROWS)
            connection.commit()
    else:
        patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        for name, value in {
            "HOST": request.getfixturevalue("server"),
            "USER": "reader",
            "PASSWORD": "geheim",
        }.items():
            patch.setenv(f"PG{name}", value)
        return "postgres:postgres"
    return f"{kind}:{folder / 'chats.db'}"


REFUSED = {
    "DELETE FROM chats": "not a query that reads: DELETE FROM chats → give one SELECT: .*SELECT …",
    "WITH gone AS (SELECT 1) DELETE FROM chats": "the query can't be run: .* → give one SELECT",
    "SELECT 1; DROP TABLE chats": r"(several statements|can't be run: .*) → give one SELECT",
    "SELECT * FROM chats WHERE note = 'nie'": "returns no rows, .*it has chats .chat_nr, absender, nachricht",
    "SELECT * FROM chat": "the query can't be run: .*chat",
    "": "the query is missing → give .*SELECT …; it has chats .chat_nr",
}


@pytest.mark.parametrize("kind", DATABASES)
def test_a_query_is_read_like_a_file_and_what_is_none_for_conversations_is_refused(
    kind: str, request: pytest.FixtureRequest
) -> None:
    source = database(kind, request)
    for query, says in REFUSED.items():
        with pytest.raises((BadInput, WrongUse), match=says) as told:
            read_logs(f"{source}?{query}", options=OPTIONS)
        assert "geheim" not in str(told.value)
    logs = read_logs(f"{source}?SELECT * FROM chats -- all of them;", options=OPTIONS)
    assert [(one.id, one.label.value) for one in logs] == [("K-0", "positive"), ("K-1", "negative")]
    assert [turn.role for turn in next(iter(logs)).turns] == ["user", "assistant"]
    if kind == "postgres":
        request.getfixturevalue("monkeypatch").setenv("PGPASSWORD", "falsch")
        with pytest.raises(BadInput, match=r"password authentication failed(?!.*falsch)"):
            read_logs(f"{source}?SELECT * FROM chats", options=OPTIONS)


def test_a_query_reaches_nothing_but_its_database_and_fetches_no_extension(
    request: pytest.FixtureRequest,
) -> None:
    source = database("duckdb", request)
    for place in (
        "'/etc/passwd'",
        "read_csv('http://example.org/a.csv')",
        "sqlite_scan('a.db', 'b')",
    ):
        with pytest.raises(BadInput, match="the query can't be run"):
            read_logs(f"{source}?SELECT * FROM {place}", options=OPTIONS)


ENDLESS = {
    "duckdb": [
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i FROM n) SELECT * FROM n",
        "SELECT a.range FROM range(10000000) a, range(10000000) b, range(100000) c WHERE a.range + b.range = -1",
        "SELECT repeat('x', 1000000000) AS text FROM range(1000)",
    ],
    "sqlite": [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT * FROM n",
        "SELECT count(*) FROM chats a, chats b, chats c, chats d, chats e, chats f, chats g, chats h, chats i,"
        " chats j, chats k, chats l, chats m, chats n, chats o, chats p, chats q, chats r, chats s, chats t",
        "SELECT randomblob(900000000)",
    ],
    "postgres": [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT * FROM n",
        "SELECT repeat('x', 900000000) FROM generate_series(1, 10)",
    ],
}


@pytest.mark.parametrize("kind", DATABASES)
def test_a_query_that_never_ends_or_takes_all_memory_is_ended_in_words(
    kind: str, request: pytest.FixtureRequest
) -> None:
    source = database(kind, request)
    for query in ENDLESS[kind]:
        begun = time.monotonic()
        with pytest.raises(
            BadInput, match=r"longer than 1 s|1 GB of memory|too big|invalid memory alloc"
        ):
            read_logs(f"{source}?{query}", options=replace(OPTIONS, query_seconds=1))
        assert time.monotonic() - begun < 10


def test_comments_before_a_query_take_no_time(request: pytest.FixtureRequest) -> None:
    source = database("sqlite", request)
    comments = "/* a */ -- b\n ( " * 60
    with pytest.raises(WrongUse, match="not a query that reads"):
        read_logs(f"{source}?{comments}/* none", options=OPTIONS)
    assert (
        len(read_logs(f"{source}?{'/**/ -- c' + chr(10)} SELECT * FROM chats", options=OPTIONS))
        == 2
    )


ACTING = (
    "lo_from_bytea(0, 'a')",
    "pg_catalog.lo_create(0)",
    '"lo_creat"(-1)',
    "pg_notify('a', 'b')",
    "lo_import/**/('/etc/passwd')",
)


def test_functions_of_postgres_that_write_are_refused_and_nothing_is_kept(
    request: pytest.FixtureRequest,
) -> None:
    psycopg = pytest.importorskip("psycopg")
    source = database("postgres", request)
    for call in ACTING:
        with pytest.raises(BadInput, match="may change something; only reading is possible"):
            read_logs(f"{source}?SELECT {call}", options=OPTIONS)
    with psycopg.connect(dbname="postgres") as connection:
        connection.execute(
            "CREATE FUNCTION hidden() RETURNS oid LANGUAGE sql AS $$ SELECT lo_create(0) $$"
        )
    with pytest.raises(BadInput, match="it writes; nothing of that was kept"):
        read_logs(f"{source}?SELECT hidden()", options=OPTIONS)
    with pytest.raises(BadInput, match="the query can't be run"):
        read_logs(f"{source}?SELECT 1; COMMIT; DROP TABLE chats", options=OPTIONS)
    with psycopg.connect(dbname="postgres") as connection:
        assert connection.execute("SELECT count(*) FROM pg_largeobject_metadata").fetchone() == (0,)
    assert (
        len(read_logs(f"{source}?SELECT *, random() FROM chats -- pg_notify()", options=OPTIONS))
        == 2
    )


SECRETS = (
    "//reader:geheim@localhost/postgres?SELECT 1",
    "//reader:ge/heim@localhost/postgres?SELECT 1",
    "dbname=a password=geheim?SELECT 1",
    "dbname=a PassWord = geheim?SELECT 1",
    "//localhost/postgres?PASSWORD=geheim?SELECT 1",
    "//localhost/postgres?sslmode=require&p%61ssword=geheim",
)


@pytest.mark.parametrize("source", SECRETS)
def test_a_password_in_the_source_is_refused_and_not_repeated(source: str) -> None:
    with pytest.raises(WrongUse, match="PGPASSWORD") as told:
        read_logs(f"postgres:{source}", options=OPTIONS)
    assert "heim" not in str(told.value)


def test_a_database_that_is_not_there_or_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such database"):
        read_logs(f"sqlite:{tmp_path / 'a.db'}?SELECT 1", options=OPTIONS)
    (tmp_path / "a.db").write_text("this is no database, and long enough" * 40, encoding="utf-8")
    for kind in ("sqlite", "duckdb"):
        with pytest.raises(BadInput, match="the query can't be run"):
            read_logs(f"{kind}:{tmp_path / 'a.db'}?SELECT * FROM a", options=OPTIONS)
