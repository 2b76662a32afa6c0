"""Folders that are looked at: each new file is scored once, and what is worse than before is told of."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from web_site import client_of, made_app

from pollex.services.bring import AllowedRoots
from pollex.services.readings import keep_reading, make_reading
from pollex.store.store import Store
from pollex.web.alerts import Alert
from pollex.web.children import Child
from pollex.web.site import Site
from pollex.web.watching import WatchedFile, Watcher, get_watcher
from pollex.web.webhook import SIGNATURE_HEADER, make_webhook_message, tell_webhook

ALERT = Alert(
    rubric="r1", text="The assistant refuses.", polarity="dsat", before=2.0, after=5.0,
    low=1.0, high=4.0, n=40, file="new.jsonl", run="score-3", against="learn-1",
    child="0123abcd", rubrics="set",
)  # fmt: skip


class NotedCommands:
    """Commands that are noted and started by nobody."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.started: list[Child] = []

    def start(self, words: str, arguments: Any, *, back: str) -> Child:
        record = Path(f"/nonexistent/{len(self.started)}.json")
        child = Child(f"{len(self.started):08x}", words, tuple(arguments), back, record)
        self.started.append(child)
        self.site.children.by_id[child.id] = child
        return child


@pytest.fixture
def watcher(own: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watcher:
    site = Site(own, {}, roots=AllowedRoots((str(tmp_path),)))
    commands = NotedCommands(site)
    monkeypatch.setattr(site.children, "start", commands.start)
    monkeypatch.setattr("pollex.web.watching.Watcher._reading_words", lambda *_: [])
    (tmp_path / "in").mkdir()
    watcher = get_watcher(site)
    watcher.add(tmp_path / "in", 0.0)
    return watcher


def looked(watcher: Watcher, times: int = 3) -> list[Child]:
    for _ in range(times):
        watcher.look()
    return list(watcher.site.children.by_id.values())


def compared(moved: bool, value: float, *, polarity: str = "dsat") -> dict[str, Any]:
    difference = {"value": value, "low": value - 1, "high": value + 1}
    rubric = {"id": "r1", "text": "It refuses.", "polarity": polarity, "before": 2.0, "after": 4.0}
    comparison = {"sizes": [40, 41], "means": [0.6, 0.5], "probability": difference}
    rubrics = [rubric | {"moved": moved, "difference": difference}]
    return {"failed": False, "comparison": comparison | {"rubrics": rubrics}}


def test_each_new_file_is_scored_once_and_then_compared(watcher: Watcher, tmp_path: Path) -> None:
    (tmp_path / "in" / "old.jsonl").write_text("{}\n")
    (tmp_path / "in" / "notes.md").write_text("x")
    (score,) = looked(watcher)
    assert score.arguments[:2] == ("score", str(tmp_path / "in" / "old.jsonl"))
    score.state = "done"
    score.told = {"run": "score-9"}
    _, check = looked(watcher)
    assert check.arguments[:2] == ("check", "score-9")
    assert any(word.startswith("--against=learn") for word in check.arguments)
    check.state = "done"
    check.told = compared(True, 2.0)
    assert len(looked(watcher, 6)) == 2, "the same file once"
    assert [alert.rubric for alert in watcher.open_alerts] == ["r1"]
    (tmp_path / "in" / "old.jsonl").write_text("{}\n{}\n")
    assert len(looked(watcher)) == 3, "another file under the same name"


@pytest.mark.parametrize(
    ("told", "alerts"),
    [
        (compared(True, 2.0), 1),
        (compared(True, -2.0), 0),
        (compared(True, -2.0, polarity="sat"), 1),
        (compared(False, 2.0), 0),
        (compared(False, -0.1) | {"failed": True}, 1),
    ],
)
def test_only_what_is_worse_by_more_than_chance_is_an_alert(
    watcher: Watcher, tmp_path: Path, told: Any, alerts: int
) -> None:
    (tmp_path / "in" / "a.jsonl").write_text("{}\n")
    (score,) = looked(watcher)
    score.state, score.told = "done", {"run": "score-9"}
    _, check = looked(watcher)
    check.state, check.told = "done", told
    looked(watcher)
    assert len(watcher.open_alerts) == alerts


def test_a_file_that_still_grows_waits_and_one_that_fails_says_why(
    watcher: Watcher, tmp_path: Path
) -> None:
    path = tmp_path / "in" / "a.csv"
    path.write_text("a")
    watcher._look_at(next(iter(watcher.folders.values())))
    path.write_text("a,b\n")
    (score,) = looked(watcher)
    score.state = "failed"
    score.lines = ["It reads.", "Error: no known format; its columns are", "  a  1", " → name them"]
    looked(watcher)
    states = {(file.state, file.why) for file in watcher.files.values()}
    assert ("failed", "no known format; its columns are … → name them") in states


def test_a_link_that_leads_out_of_the_folder_is_not_read(watcher: Watcher, tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text("{}\n")
    (tmp_path / "in" / "a.jsonl").symlink_to(tmp_path / "secret.jsonl")
    assert looked(watcher) == []


def test_a_server_that_is_started_anew_goes_on_and_scores_nothing_twice(
    watcher: Watcher, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.jsonl").write_text("{}\n")
    (score,) = looked(watcher)
    score.state, score.told = "failed", None
    looked(watcher)
    watcher.set_webhook("https://hooks.example.com/", with_text=True)
    later = Watcher.of(watcher.site)
    assert later.webhook == watcher.webhook
    assert later.secret == watcher.secret
    assert {file.state for file in later.files.values()} == {"failed"}
    kept = watcher.site.store.folder / "watched.json"
    assert kept.stat().st_mode & 0o077 == 0
    kept.write_text('{"folders": 1}')
    assert Watcher.of(watcher.site).files == {}
    assert Watcher.of(watcher.site).offer is None


class Hook(BaseHTTPRequestHandler):
    heard: list[tuple[dict[str, str], bytes]]
    answers: list[int]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        type(self).heard.append((dict(self.headers), body))
        self.send_response(type(self).answers.pop(0))
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[tuple[str, type[Hook]]]:
    kind = type("OneHook", (Hook,), {"heard": [], "answers": []})
    server = HTTPServer(("127.0.0.1", 0), kind)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", kind
    server.shutdown()


def test_a_webhook_is_signed_tried_again_and_sent_on_nowhere(
    own: Store, hook: tuple[str, type[Hook]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pollex.web.webhook.RETRY_WAITS_SECONDS", (0.0, 0.0, 0.0))
    address, kind = hook
    site = Site(own, {}, local_endpoints=True)
    kind.answers = [500, 200]
    assert tell_webhook(site, address, "s3cret", [ALERT], with_text=False) == "told, 200"
    headers, body = kind.heard[1]
    moment, _, signature = headers[SIGNATURE_HEADER].partition(",v1=")
    signed = f"{moment.removeprefix('t=')}.".encode() + body
    assert signature == hmac.new(b"s3cret", signed, hashlib.sha256).hexdigest()
    assert b"refuses" not in body
    assert json.loads(body)["alerts"][0]["rubric"] == "r1"
    kind.answers = [302]
    told = tell_webhook(site, address, "s3cret", [ALERT], with_text=False)
    assert told == "not told: it answered 302"
    assert len(kind.heard) == 3
    outside = Site(own, {})
    assert "own network" in tell_webhook(outside, address, "s", [ALERT], with_text=False)
    assert len(kind.heard) == 3
    assert make_webhook_message([ALERT], with_text=True)["alerts"][0]["text"] == ALERT.text


async def test_alerts_stand_first_at_home_until_somebody_has_seen_them(own: Store) -> None:
    app = made_app(own)
    get_watcher(app.app.state.site).alerts.append(ALERT)  # type: ignore[attr-defined]
    async with client_of(app) as client:
        home = (await client.get("/")).text
        told = (await client.get("/api/watch")).text
        await client.post("/api/watch/seen", json={})
        after = (await client.get("/")).text
        watched = (await client.get("/watch")).text
    assert home.index("Worse than before") < home.index("good conversations from bad ones")
    assert "Worse than before" not in after
    assert "The assistant refuses." in watched
    assert "secret" not in told


async def test_a_folder_is_named_only_under_those_that_may_be_read(
    own: Store, tmp_path: Path
) -> None:
    (tmp_path / "logs" / "today").mkdir(parents=True)
    app = made_app(own, roots=AllowedRoots((str(tmp_path / "logs"),)))
    watcher = get_watcher(app.app.state.site)  # type: ignore[attr-defined]
    async with client_of(app) as client:
        for place in ("/etc", "..", "../..", str(tmp_path), "today/../../", "nowhere", "a\0b"):
            refused = await client.post("/api/watch/folders", json={"place": place})
            assert refused.status_code == 400, place
        assert watcher.folders == {}
        kept = await client.post("/api/watch/folders", json={"place": "today"})
        assert kept.status_code == 200
        inner = {"url": "http://127.0.0.1:1/"}
        assert (await client.post("/api/watch/webhook", json=inner)).status_code == 403
        for url in ("javascript:alert(1)", "nonsense"):
            refused = await client.post("/api/watch/webhook", json={"url": url})
            assert refused.status_code == 400
            assert refused.json()["error"] == "the address is not an http(s) address"
        (path,) = watcher.folders
        await client.post("/api/watch/removal", json={"place": path})
    assert watcher.folders == {}


def test_a_name_that_is_no_text_is_shown_as_failed(watcher: Watcher, tmp_path: Path) -> None:
    (tmp_path / "in" / "a\udcff.jsonl").write_text("{}")
    assert looked(watcher) == []
    (file,) = watcher.files.values()
    assert (file.state, "\\xff" in file.path or "\\udcff" in file.path) == ("failed", True)
    assert "UTF-8" in file.why


def test_a_webhook_whose_answer_has_no_end_is_told_by_its_status(own: Store) -> None:
    class Endless(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                while True:
                    self.wfile.write(b"x" * 65536)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Endless)
    Thread(target=server.serve_forever, daemon=True).start()
    site = Site(own, {}, local_endpoints=True)
    address = f"http://127.0.0.1:{server.server_port}/"
    assert tell_webhook(site, address, "s", [ALERT], with_text=False) == "told, 200"
    server.shutdown()


async def test_folders_and_an_address_that_a_stranger_wrote_wait_for_a_yes(
    own: Store, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "a.jsonl").write_text("{}\n")
    hostile = {
        "folders": [{"path": str(tmp_path / "private"), "minutes": 0.1, "is_from_start": False}],
        "files": {"x": {"path": "/etc/passwd", "mark": "1 1", "state": "new"}},
        "alerts": [{"rubric": 5}],
        "webhook": "https://hooks.example.com/steal",
        "with_text": True,
        "secret": "x",
    }
    (own.folder / "watched.json").write_text(json.dumps(hostile))
    app = made_app(own, roots=AllowedRoots((str(tmp_path / "in"),)), local_endpoints=True)
    watcher = get_watcher(app.app.state.site)  # type: ignore[attr-defined]
    watcher.look()
    assert (watcher.folders, watcher.files, watcher.webhook) == ({}, {}, "")
    # a folder of the server's start doesn't take the place of the question
    watcher.add(tmp_path / "in", 5.0, is_from_start=True)
    again = Watcher.of(watcher.site)
    assert again.offer == watcher.offer
    assert again.offer is not None
    yes = {"confirmed": again.offer.digest, "is_wanted": True}
    async with client_of(app) as client:
        page = (await client.get("/watch")).text
        assert "hooks.example.com/steal" in page
        stale = yes | {"confirmed": "x"}
        assert (await client.post("/api/watch/offer", json=stale)).status_code == 409
        assert (await client.post("/api/watch/offer", json=yes)).status_code == 400, "no root"
        assert watcher.webhook == ""
        watcher.site.roots = AllowedRoots((str(tmp_path),))
        assert (await client.post("/api/watch/offer", json=yes)).status_code == 200
        assert watcher.webhook == hostile["webhook"]
        assert watcher.secret != "x"
        assert "are they yours" not in (await client.get("/watch")).text
    assert str(tmp_path / "private") in Watcher.of(watcher.site).folders
    assert watcher.files == {}


def test_a_folder_is_looked_at_only_while_the_server_may_read_it(
    watcher: Watcher, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.jsonl").write_text("{}\n")
    watcher.site.roots = AllowedRoots(())
    assert looked(watcher) == []
    (folder,) = watcher.folders.values()
    assert "in no folder that this server may read" in watcher.refusal_of(folder)


def test_a_file_is_read_as_a_kept_log_of_the_same_columns(own: Store, tmp_path: Path) -> None:
    content = "Nr;Wer;Satz, wörtlich;Note\n1;Gast;Hallo;\n1;Bot;Guten Tag;gut\n"
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "woche2.csv").write_text(content)
    reading = make_reading(own.folder, "woche1.csv")
    columns = {"conversation": "Nr", "role": "Wer", "text": "Satz", "label": "Note"}
    roles = {"user": ["Gast"], "assistant": ["Bot", "Berater"]}
    options = {"columns": columns, "roles": roles, "positive": "gut"}
    seen = tuple(content.partition("\n")[0].split(";"))
    keep_reading(replace(reading, options=options, columns=seen, is_kept=True))
    site = Site(own, {}, roots=AllowedRoots((str(tmp_path),)))
    words = Watcher.of(site)._reading_words(folder / "woche2.csv")
    assert "--columns=conversation=Nr,role=Wer,text=Satz,label=Note" in words
    assert "--roles=user=Gast,assistant=Bot,assistant=Berater" in words
    assert "--positive=gut" in words


def test_what_was_at_work_when_the_server_ended_goes_on_with_the_next_one(
    watcher: Watcher, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / "in" / f"{name}.jsonl").write_text("{}\n")
    of_a, of_b = looked(watcher)
    of_a.state, of_a.told = "done", {"run": "score-9"}
    (check,) = looked(watcher)[2:]
    # the server's end stops what is at work
    watcher.close()
    for child in (of_b, check):
        child.state = "stopped"
    looked(watcher)
    later = Watcher.of(watcher.site)
    assert {file.state for file in later.files.values()} == {"checking", "scoring"}
    looked(later)
    _, _, _, *begun = later.site.children.by_id.values()
    assert sorted(child.arguments[:2] for child in begun) == [
        ("check", "score-9"),
        ("score", str(tmp_path / "in" / "b.jsonl")),
    ]


async def test_a_file_that_failed_or_was_stopped_is_tried_again_by_a_button(
    own: Store, tmp_path: Path
) -> None:
    app = made_app(own)
    watcher = get_watcher(app.app.state.site)  # type: ignore[attr-defined]
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n")
    failed = WatchedFile(path=str(path), mark="7 7", state="failed", why="no known format")
    watcher.files = {"a": failed}
    async with client_of(app) as client:
        page = (await client.get("/watch")).text
        told = {"place": failed.path, "mark": failed.mark}
        await client.post("/api/watch/again", json=told)
        after = (await client.get("/watch/live")).text
    assert "Try a.jsonl again" in page
    assert "it may still grow" in after
    assert watcher.files["a"].why == ""


def test_what_waits_in_a_folder_that_is_watched_no_more_is_not_scored(
    watcher: Watcher, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.jsonl").write_text("{}\n")
    watcher.look()
    watcher.remove(str(tmp_path / "in"))
    assert looked(watcher) == []


def test_a_file_with_few_conversations_says_that_it_was_not_compared(
    watcher: Watcher, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.jsonl").write_text("{}\n")
    (score,) = looked(watcher)
    score.state, score.told = "done", {"run": "score-9"}
    _, check = looked(watcher)
    told = compared(True, 2.0)
    told["comparison"]["sizes"] = [40, 19]
    check.state, check.told = "done", told
    looked(watcher)
    (file,) = watcher.files.values()
    assert (file.state, watcher.alerts) == ("done", [])
    assert "too few conversations to compare" in file.why
