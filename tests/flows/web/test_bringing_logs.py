"""Logs that are brought in the browser: files, places and the bundled log, what was read, and how it is corrected."""

import gzip
import io
import json
import re
import sqlite3
import stat
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard
from httpx2 import AsyncClient
from small_runs import run_here
from web_site import client_of, made_app

from pollex.services.bring import AllowedRoots
from pollex.services.log_view import LARGE_LOG_BYTES
from pollex.services.readings import LOGS_FOLDER_NAME, list_readings
from pollex.store.seal import Seal
from pollex.store.store import Store
from pollex.store.tables import AnnotatorRow, format_current_time
from pollex.web import links
from pollex.web.guests import hash_token

MOST = 200_000


def german(n: int = 12) -> str:
    """A table with German columns, of which the label's words are ones that nobody knows."""
    rows = ["chat_nr;absender;nachricht;zufriedenheit"]
    for number in range(n):
        word = ("knorke", "mau", "")[number % 3]
        rows += [
            f"{number};Kunde;Wo ist mein Paket Nummer {number}? Ich warte schon lange darauf.;",
            f"{number};Berater;Das Paket {number} ist unterwegs, bitte haben Sie Geduld.;{word}",
        ]
    return "\n".join(rows) + "\n"


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / ".pollex") as store:
        yield store


@pytest.fixture
async def web(empty: Store, tmp_path: Path) -> AsyncIterator[AsyncClient]:
    (tmp_path / "logs").mkdir()
    roots = AllowedRoots((str(tmp_path / "logs"),), is_open=False)
    async with client_of(made_app(empty, roots=roots, max_upload=MOST)) as opened:
        yield opened


async def bring(web: AsyncClient, *files: tuple[str, bytes]) -> str:
    """Bring files; return the address of their log."""
    sent = await web.post(
        "/api/logs/files", files=[("files", (name, content)) for name, content in files]
    )
    assert sent.status_code == 200, sent.text
    return str(sent.json()["address"])


async def seen(web: AsyncClient, address: str, **query: str) -> dict[str, Any]:
    """What was read of a log, as JSON; a server under load may still read."""
    for _ in range(6):
        answer = await web.get(f"/api{address}", params=query)
        assert answer.status_code == 200, answer.text
        view: dict[str, Any] | None = answer.json()["view"]
        if view is not None:
            return view
    raise AssertionError("it is still being read after a minute")


def files_in(store: Store) -> list[Path]:
    """All that the store holds of logs that were brought."""
    return [path for path in (store.folder / LOGS_FOLDER_NAME).rglob("*") if path.is_file()]


async def test_a_table_with_german_columns_is_brought_corrected_and_kept(
    web: AsyncClient, empty: Store
) -> None:
    address = await bring(web, ("Chats März.csv", german().encode()))
    proposed = await seen(web, address)
    page = (await web.get(address)).text
    assert "Is this what was said?" in page
    assert "Chats März.csv" in page
    assert str(empty.folder) not in page

    # the column of the label is named; its words are nobody's, and wait to be said
    shown = {f"col-{column['path']}": f"{column['part']}!" for column in proposed["columns"]}
    carried = {
        f"opt-{name}": json.dumps(value) if isinstance(value, dict) else value
        for name, value in proposed["options"].items()
    }
    labeled = await seen(web, address, **carried, **shown | {"col-zufriedenheit": "label"})
    words = {row["value"]: (row["counts"], row["is_unknown"]) for row in labeled["values"]}
    assert words == {
        "(empty)": ("none", False),
        "knorke": ("none", True),
        "mau": ("none", True),
    }

    carried = {
        f"opt-{name}": json.dumps(value) if isinstance(value, dict) else value
        for name, value in labeled["options"].items()
    }
    clicked = {"val-knorke": "up", "val-mau": "down"}
    told = await seen(web, address, **carried, **clicked)
    assert told["rated"] == {"up": 4, "down": 4, "not rated": 4}

    kept = await web.post(
        f"/api{address}/reading",
        data={**carried, **clicked, "name": "support"},
    )
    assert kept.status_code == 303, kept.text
    (reading,) = list_readings(empty.folder)
    assert (reading.argument, reading.conversations) == ("log:support", 12)
    offered = (await web.get("/begin/learn")).text
    assert "support (12 conversations, 4 thumbs up, 4 down)" in offered
    ended = run_here("inspect", "log:support", "--store", empty.folder)
    assert "4 up, 4 down, 4 not rated" in ended.out

    # the next log of these columns is read in the same way
    again = await bring(web, ("Dezember.csv", german(20).encode()))
    page = (await web.get(again)).text
    assert "is read in the same way" in page
    assert "7 up" in page


async def test_a_speaker_who_is_no_turn_and_a_choice_made_up_are_told_apart(
    web: AsyncClient,
) -> None:
    address = await bring(web, ("a.csv", german().encode()))
    proposed = await seen(web, address)
    carried = {
        f"opt-{name}": json.dumps(proposed["options"][name]) for name in ("columns", "roles")
    }
    shown = {f"who-{one['name']}": f"{one['role']}!" for one in proposed["speakers"]}
    without = await seen(web, address, **carried, **shown | {"who-Berater": "none"})
    assert dict(without["facts"])["Who speaks"] == "user (12)"
    refused = await seen(web, address, **carried, **{"who-Berater": "boss"})
    assert refused["error"]["what"] == "'boss' is none of the choices"
    twice = await seen(web, address, **{"col-chat_nr": "text", "col-nachricht": "text"})
    assert "two columns are chosen for one part" in twice["error"]["what"]


async def test_files_are_kept_for_their_owner_alone_under_random_names(
    web: AsyncClient, empty: Store
) -> None:
    name = "../../../etc/C:\\logs\\passwd.jsonl"
    row = json.dumps({"id": "a", "messages": [{"role": "user", "content": "Hi there"}]})
    address = await bring(web, (name, f"{row}\n".encode()))
    assert "passwd.jsonl" in (await web.get(address)).text
    paths = files_in(empty)
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in paths} == {0o700}
    log = next(path for path in paths if path.suffix == ".jsonl")
    assert re.fullmatch("[0-9a-f]{16}", log.stem)
    assert not any("passwd" in path.name for path in empty.folder.parent.rglob("*"))


NO_LOGS = {
    "picture.png": (b"\x89PNG\r\n\x1a\n" + bytes(40), "a picture"),
    "log.csv": (b"\x7fELF" + bytes(40), "a program"),
    "a.pdf": (b"%PDF-1.7 hello", "a PDF"),
    "a.7z": (b"7z\xbc\xaf" + bytes(40), "packed with 7-Zip"),
    "a.bin": (b"ab\x00\x01\x02cd" * 20, "neither text nor a known table"),
    "empty.csv": (b" \n", "the file is empty"),
    "broken.zip": (b"PK\x03\x04 broken", "can't be unpacked"),
    "broken.gz": (b"\x1f\x8b broken", "can't be unpacked"),
}


@pytest.mark.parametrize("name", NO_LOGS)
async def test_what_is_no_log_by_its_content_is_refused_whatever_its_name(
    web: AsyncClient, empty: Store, name: str
) -> None:
    content, why = NO_LOGS[name]
    sent = await web.post("/api/logs/files", files={"files": (name, content)})
    assert (sent.status_code, why in sent.json()["error"]) == (400, True), sent.text
    assert files_in(empty) == []


async def test_of_several_files_those_that_are_no_log_are_left_out_and_told(
    web: AsyncClient,
) -> None:
    content, _ = NO_LOGS["picture.png"]
    address = await bring(web, ("a.csv", german().encode()), ("picture.png", content))
    page = (await web.get(address)).text
    assert "Left out: picture.png: the file is a picture, and no log" in page


def packed(kind: str, content: bytes) -> bytes:
    if kind == "gz":
        return gzip.compress(content)
    if kind == "zst":
        return zstandard.ZstdCompressor().compress(content)
    folder = io.BytesIO()
    with zipfile.ZipFile(folder, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", content)
    return folder.getvalue()


@pytest.mark.parametrize("kind", ["gz", "zst", "zip"])
async def test_archives_are_read_and_count_as_what_they_unpack_to(
    web: AsyncClient, empty: Store, kind: str
) -> None:
    address = await bring(web, (f"a.csv.{kind}", packed(kind, german().encode())))
    assert (await seen(web, address))["conversations"] == 12
    kept = files_in(empty)
    bomb = packed(kind, bytes(MOST + 1))
    assert len(bomb) < MOST / 10
    sent = await web.post("/api/logs/files", files={"files": (f"b.{kind}", bomb)})
    assert (sent.status_code, "more than 200 kB" in sent.json()["error"]) == (413, True), sent.text
    assert files_in(empty) == kept


async def test_an_upload_over_the_limit_ends_early_and_leaves_nothing(
    web: AsyncClient, empty: Store
) -> None:
    sent = await web.post("/api/logs/files", files={"files": ("a.csv", b"x" * (MOST + 1))})
    assert sent.status_code == 413

    async def endless() -> AsyncIterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n'
        while True:
            yield b"x" * 50_000

    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    sent = await web.post("/api/logs/files", content=endless(), headers=headers)
    assert sent.status_code == 413
    assert files_in(empty) == []


FRAMINGS = {
    "no boundary": ("multipart/form-data", b"--b\r\n"),
    "another kind": ("text/csv", b"a,b\n"),
    "an endless boundary": (f"multipart/form-data; boundary={'b' * 500}", b"--b"),
    "the end is missing": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nid,text\n',
    ),
    "nothing": ("multipart/form-data; boundary=b", b""),
    "another boundary": ("multipart/form-data; boundary=b", b"--c\r\n\r\n--c--\r\n"),
    "no name": ("multipart/form-data; boundary=b", b"--b\r\nA: b\r\n\r\nx\r\n--b--\r\n"),
    "another field": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="path"\r\n\r\n/etc/passwd\r\n--b--\r\n',
    ),
    "a file in another field": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="x"; filename="a"\r\n\r\nx\r\n--b--\r\n',
    ),
    "endless headers": ("multipart/form-data; boundary=b", b"--b\r\n" + b"A: b\r\n" * 100),
    "a long field": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="site"\r\n\r\n' + b"x" * 5000,
    ),
    "many parts": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n\r\n' * 300,
    ),
}


@pytest.mark.parametrize("kind", FRAMINGS)
async def test_a_form_whose_framing_is_broken_is_refused_and_leaves_nothing(
    web: AsyncClient, empty: Store, kind: str
) -> None:
    form, content = FRAMINGS[kind]
    sent = await web.post("/api/logs/files", content=content, headers={"Content-Type": form})
    assert sent.status_code in (400, 413), sent.text
    assert files_in(empty) == []


async def test_a_stranger_a_guest_another_site_and_another_server_can_bring_nothing(
    web: AsyncClient, empty: Store
) -> None:
    files = {"files": ("a.csv", german().encode())}
    addresses = [
        ("/api/logs/files", {"files": files}),
        ("/api/logs/bundled", {"data": {}}),
        ("/api/logs/place", {"data": {"place": "a.csv"}}),
        ("/api/logs/pull", {"data": {"tool": "phoenix"}}),
    ]
    async with client_of(made_app(empty), token=None) as stranger:
        for address, body in addresses:
            assert (await stranger.post(address, **body)).status_code == 401
    token = "cd" * 32
    empty.put(
        [
            AnnotatorRow(
                "g",
                "Guest",
                hash_token(Seal.of(empty.folder), token),
                format_current_time(),
                f"{links.LABEL_PATH}/q",
            )
        ]
    )
    empty.flush()
    async with client_of(made_app(empty), token=token) as guest:
        for address, body in addresses:
            assert (await guest.post(address, **body)).status_code == 403
        assert (await guest.get(links.LOGS_PATH)).status_code == 403
    async with client_of(made_app(empty, read_only=True)) as reader:
        for address, body in addresses:
            assert (await reader.post(address, **body)).status_code == 403
    foreign = {"Origin": "http://evil.example"}
    for address, body in addresses:
        assert (await web.post(address, headers=foreign, **body)).status_code == 403
    clash = await web.post("/api/logs/files", files=files, data={"site": "another"})
    assert clash.status_code == 409
    assert files_in(empty) == []


async def test_a_place_is_read_where_its_folder_was_named_and_nowhere_else(
    web: AsyncClient, empty: Store, tmp_path: Path
) -> None:
    (tmp_path / "logs" / "a.csv").write_text(german(), "utf-8")
    (tmp_path / "secret.csv").write_text(german(), "utf-8")
    (tmp_path / "logs" / "link.csv").symlink_to(tmp_path / "secret.csv")
    (tmp_path / "logs-beside").mkdir()
    (tmp_path / "logs-beside" / "b.csv").write_text(german(), "utf-8")
    for place in ("a.csv", str(tmp_path / "logs" / "a.csv")):
        brought = await web.post("/api/logs/place", data={"place": place})
        assert brought.status_code == 303, brought.text
        view = await seen(web, brought.headers["location"])
        assert view["conversations"] == 12
        page = (await web.get(brought.headers["location"])).text
        assert str(tmp_path) not in page

    refused = (
        "../secret.csv",
        "link.csv",
        "*.csv",
        "/etc/passwd",
        "/etc/pass*",
        "logs/../../secret.csv",
        str(tmp_path / "secret.csv"),
        str(tmp_path / "logs-beside" / "b.csv"),
        "../logs-beside/*.csv",
        "nothing.csv",
        "/",
        "",
        "-",
        "a\x00b",
        "http://127.0.0.1/a.csv",
        "file:///etc/passwd",
        "s3://bucket/a.csv",
        "postgres://localhost/x?SELECT 1",
        "sqlite:../secret.db?SELECT 1",
        f"duckdb:{tmp_path}/secret.db?SELECT 1",
        "log:other",
    )
    before = len(files_in(empty))
    for place in refused:
        answer = await web.post("/api/logs/place", data={"place": place})
        assert answer.status_code == 400, (place, answer.text)
        assert str(tmp_path) not in answer.json()["error"]
    assert len(files_in(empty)) == before


async def test_a_database_under_a_root_is_queried(web: AsyncClient, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "logs" / "a.db")) as database, database:
        database.execute("CREATE TABLE m (conversation_id, role, content)")
        database.execute("INSERT INTO m VALUES (1, 'user', 'Hi there'), (1, 'assistant', 'Hello')")
    place = "sqlite:a.db?SELECT * FROM m"
    brought = await web.post("/api/logs/place", data={"place": place})
    assert (await seen(web, brought.headers["location"]))["conversations"] == 1


async def test_a_place_whose_folder_may_not_be_read_any_more_is_refused(
    web: AsyncClient, empty: Store, tmp_path: Path
) -> None:
    (tmp_path / "logs" / "a.csv").write_text(german(), "utf-8")
    brought = await web.post("/api/logs/place", data={"place": "a.csv"})
    async with client_of(made_app(empty)) as without_roots:
        view = await seen(without_roots, brought.headers["location"])
        assert "in no folder that this server may read" in view["error"]["what"]


async def test_the_bundled_log_is_brought_by_one_click_and_a_log_is_removed(
    web: AsyncClient, empty: Store
) -> None:
    brought = await web.post("/api/logs/bundled", data={})
    address = brought.headers["location"]
    view = await seen(web, address)
    assert view["rated"] == {"up": 224, "down": 176, "not rated": 80}
    assert len(view["talks"]) == 2
    listed = (await web.get("/api/logs")).json()["logs"]
    assert [log["argument"] for log in listed] == ["log:bikes"]
    removed = await web.post(f"/api{address}/removal", data={})
    assert removed.headers["location"] == links.LOGS_PATH
    assert (await web.get(address)).status_code == 404
    assert files_in(empty) == []


async def test_a_tool_is_pulled_from_with_keys_that_no_page_and_no_argument_has(
    web: AsyncClient,
) -> None:
    wrong = await web.post("/api/logs/pull", data={"tool": "excel"})
    assert "can't be pulled from" in wrong.text
    stray = await web.post(
        "/api/logs/pull", data={"tool": "langfuse", "key-PATH": "/tmp", "project": "x"}
    )
    assert stray.status_code == 400
    # others may reach this server: nobody has it ask its own network
    for url in ("http://127.0.0.1:1", "http://169.254.169.254/", "http://[::1]/", "file:///etc"):
        answer = await web.post(
            "/api/logs/pull", data={"tool": "phoenix", "project": "x", "url": url}
        )
        assert answer.status_code in (400, 403, 404), answer.text


@pytest.mark.parametrize(
    "place",
    ["//u@other/x", "x host=other", "x hostaddr=10.0.0.1", "host=other", "//u@/x%3Fhost=other"],
)
async def test_the_servers_password_goes_to_no_database_that_a_visitor_typed(
    place: str, empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("PGPASSWORD", "canary")
    monkeypatch.setenv("PGHOST", "own")
    app = made_app(empty, roots=AllowedRoots(is_open=True))
    async with client_of(app) as web:
        typed = {"place": f"postgres:{place}?SELECT 1"}
        answer = await web.post("/api/logs/place", data=typed)
        assert answer.status_code == 400
        assert "the password of this server is not for" in answer.text
        own = await web.post("/api/logs/place", data={"place": "postgres://u@own/x?SELECT 1"})
        assert own.status_code in (200, 303), own.text


async def test_a_kept_log_that_is_asked_for_in_a_way_that_cannot_be_says_so(own: Store) -> None:
    async with client_of(made_app(own)) as client:
        log = (await client.post("/api/logs/bundled", json={})).json()["log"]
        await client.post(f"/api/logs/{log}/reading", json={"name": "bikes"})
        answer = await client.get(
            f"/logs/{log}?who-user=elsewhere", headers={"accept": "text/html"}
        )
    assert answer.status_code == 200
    assert "can’t be read so" in answer.text


async def test_a_large_log_of_which_the_first_rows_were_looked_at_has_a_size_and_no_count(
    empty: Store,
) -> None:
    messages = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Yes."}]
    row = {"messages": messages, "notes": "x" * (LARGE_LOG_BYTES // 4)}
    lines = [json.dumps(row | {"id": f"talk {number}"}) for number in range(5)]
    async with client_of(made_app(empty, max_upload=2 * LARGE_LOG_BYTES)) as web:
        address = await bring(web, ("large.jsonl", "\n".join(lines).encode()))
        await seen(web, address)
        kept = await web.post(f"/api{address}/reading", data={"name": "large"})
        form = (await web.get("/begin/label-queue")).text
    assert kept.status_code == 303, kept.text
    assert "large (84 MB)" in form.replace("\N{NO-BREAK SPACE}", " ")
