"""Readers see all pages without paths of the server, and begin and change nothing; a page can be taken along."""

import re
from hashlib import sha256
from html import unescape
from pathlib import Path

from httpx2 import AsyncClient
from web_site import client_of, made_app

from pollex.store.seal import Seal
from pollex.store.store import Store
from pollex.store.tables import AnnotatorRow, format_current_time
from pollex.web.guard import Guard
from pollex.web.guests import hash_token
from pollex.web.hooks import list_menu_entries

HTML = {"accept": "text/html"}
MOVED = {
    "logs": ["/srv/secret/a.jsonl"],
    "folder": "/srv/secret",
    "command": "pollex score '/srv/secret/b c.jsonl' --out=/srv/secret/d.jsonl",
}


async def reader_of(app: Guard) -> AsyncClient:
    async with client_of(app) as owner:
        made = await owner.post(
            "/api/guests", json={"room": "read", "place": "all", "names": "Ann"}
        )
    token = made.json()["links"][0]["link"].rpartition("token=")[2]
    return client_of(app, token=token)


async def test_a_reader_sees_every_page_and_can_send_nothing(own: Store) -> None:
    app = made_app(own)
    run = next(iter(app.app.state.site.runs())).id  # type: ignore[attr-defined]
    pages = [entry.address for entry in list_menu_entries()] + [f"/runs/{run}", "/begin/learn"]
    async with await reader_of(app) as reader:
        for path in pages:
            answer = await reader.get(path, headers=HTML)
            assert answer.status_code == 200, path
            assert '<form method="post"' not in answer.text or path.startswith("/label"), path
            assert 'data-key="g b"' not in answer.text, path
        for path in ("/api/begin/learn", "/api/queues", "/api/guests", "/api/watch/seen"):
            answer = await reader.post(path, json={})
            assert answer.status_code == 403, path
            assert "for reading alone" in answer.text
    assert not own.value("SELECT count(*) FROM queues")


async def test_a_link_that_was_taken_back_reads_no_more(own: Store) -> None:
    app = made_app(own)
    async with await reader_of(app) as reader, client_of(app) as owner:
        assert (await reader.get("/runs")).status_code == 200
        page = (await owner.get("/pass-on", headers=HTML)).text
        (guest,) = re.findall(r"/api/guests/(\w+)/revocation", page)
        await owner.post(f"/api/guests/{guest}/revocation", json={})
        assert (await reader.get("/runs")).status_code == 401


async def test_a_link_that_a_stranger_or_an_earlier_pollex_made_opens_nothing(
    own: Store,
) -> None:
    await reader_of(made_app(own))
    # a stranger knows how an earlier pollex kept tokens, and what its own seal would make of one
    token = "cd" * 16
    digests = (sha256(token.encode()).hexdigest(), hash_token(Seal(b"stranger"), token))
    for number, digest in enumerate(digests):
        own.put([AnnotatorRow(f"{number}", "Eve", digest, format_current_time(), "/")])
    own.flush()
    app = made_app(own)
    async with client_of(app, token=token) as stranger, client_of(app) as owner:
        assert (await stranger.get("/runs")).status_code == 401
        assert (await stranger.get("/enter", params={"token": token})).status_code == 401
        page = (await owner.get("/pass-on", headers=HTML)).text
    assert page.count("opens nothing") == 2
    assert page.count("link back</button>") == 1


async def test_no_path_of_the_server_reaches_a_reader(own: Store, tmp_path: Path) -> None:
    app = made_app(own)
    async with client_of(app) as owner:
        sent = {"files": ("talks.jsonl", b'{"messages": []}\n', "application/json")}
        log = (await owner.post("/api/logs/files", files=sent)).json()["log"]
    (path,) = (own.folder / "logs" / log).glob("*.jsonl")
    arguments = {
        "logs": [str(path)],
        "folder": str(own.folder.absolute().parent),
        "command": f"pollex score {path}",
    }
    run = own.begin("score", arguments=arguments, fingerprint={}, versions={}).id
    async with await reader_of(app) as reader, client_of(app) as owner:
        pages = [f"/runs/{run}", "/runs", "/at-work", "/", "/logs", f"/logs/{log}"]
        for page in (*pages, "/api/runs"):
            shown = unescape((await reader.get(page)).text)
            assert str(own.folder.absolute().parent) not in shown, page
            assert path.name not in shown, page
        # a store that was moved: the folders and files of then are not told, either
        own.begin("score", arguments=MOVED, fingerprint={}, versions={})
        for page in ("/runs", f"/runs/{own.value('SELECT id FROM runs ORDER BY number DESC')}"):
            assert "/srv/secret" not in unescape((await reader.get(page, headers=HTML)).text), page
        shown = unescape((await owner.get(f"/runs/{run}", headers=HTML)).text)
        assert path.name not in shown.split("What it was started with")[1].split("<code>")[0]


async def test_a_page_is_taken_along_as_one_file_that_needs_no_server(own: Store) -> None:
    async with client_of(made_app(own)) as owner:
        answer = await owner.get("/?as_file=1", headers=HTML)
    assert answer.headers["content-disposition"] == 'attachment; filename="pollex-home.html"'
    page = answer.text
    assert "<style>" in page
    assert "good conversations from bad ones" in page
    for part in ("<script", "<form", "<link", "src=", 'href="/'):
        assert part not in page, part


async def test_only_a_report_that_pollex_wrote_is_sent(own: Store, tmp_path: Path) -> None:
    async with client_of(made_app(own)) as owner:
        for id_ in ("../../etc/passwd", "0" * 64):
            answer = await owner.get("/pass-on/report", params={"id": id_})
            assert answer.status_code == 404
