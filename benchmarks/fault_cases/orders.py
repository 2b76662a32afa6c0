"""What a store, a folder or a tool of somebody else orders: it is not done before the owner says yes."""

import asyncio
import contextlib
import json
import shutil
import sqlite3
import sys
from contextlib import closing
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from web_site import client_of, made_app

from fault_cases import case
from fault_cases.commands import learned, run
from pollex.errors import PollexError
from pollex.graphs.context import NullProgress
from pollex.rooms.exchange.services.transfer import push_scores
from pollex.rooms.remedy.agents.assistant import FileAssistant, build_assistant
from pollex.rooms.remedy.agents.assistant_process import name_signal, parse_host_message
from pollex.rooms.remedy.services.run import require_writable_places
from pollex.services.bring import AllowedRoots
from pollex.services.readings import list_readings
from pollex.store.database import DATABASE_FILE_NAME
from pollex.store.seal import Seal
from pollex.store.store import Store
from pollex.store.tables import AnnotatorRow, format_current_time
from pollex.web.children import Children
from pollex.web.guests import make_guest_finder
from pollex.web.site import Site, read_or_make_token
from pollex.web.watching import Watcher

HTML = {"accept": "text/html"}


def refusal(work: Any, *given: Any) -> str:
    """Return what a piece of work is refused with."""
    try:
        work(*given)
    except PollexError as error:
        return str(error)
    raise AssertionError(f"{given} is taken")


@case("42.1.12", "a store's token and links open nothing where this machine didn't make them")
def tokens_of_strangers(folder: Path) -> str:
    """Serve a store that brings a token and a link, and a copy of a store of one's own."""
    learned(folder)
    token = "cd" * 32
    (folder / "s" / "token").write_text(token)
    with Store.open(folder / "s") as store:
        digest = sha256(token.encode()).hexdigest()
        store.keep([AnnotatorRow("a", "Eve", digest, format_current_time(), "/")])
        assert make_guest_finder(store)(token) is None
    mine = read_or_make_token(folder / "s")
    assert mine not in (token, read_or_make_token(shutil.copytree(folder / "s", folder / "copy")))
    assert mine == read_or_make_token(folder / "s")
    return "a token, a link and a copy"


@case("42.1.13", "a log that a store keeps names files of its own folder and options of reading")
def readings_of_strangers(folder: Path) -> str:
    """Put odd logs into a store, and ask for the pages of logs."""
    learned(folder)
    plain = {"name": "n", "created": "2026-01-01", "files": ["a.jsonl"], "titles": ["t"]}
    odd: list[dict[str, Any]] = [
        *({"files": [name]} for name in ("../../../log.jsonl", "/etc/passwd", "..", "a/b")),
        *({"created": 5}, {"name": 5}, {"titles": []}, {"options": [1]}, {"notes": [{}]}),
    ]
    for number, changes in enumerate(odd):
        place = folder / "s" / "logs" / f"{number:012x}"
        place.mkdir(parents=True)
        (place / "reading.json").write_text(json.dumps(plain | {"is_kept": True} | changes))
    assert list_readings(folder / "s", kept_only=False) == []

    async def statuses() -> set[int]:
        with Store.open(folder / "s") as store:
            async with client_of(made_app(store)) as client:
                pages = ("/logs", "/begin/learn", *(f"/logs/{n:012x}" for n in range(len(odd))))
                return {(await client.get(page, headers=HTML)).status_code for page in pages}

    assert asyncio.run(statuses()) == {200, 404}
    return f"{len(odd)} logs, none read"


@case("42.1.14", "folders and a webhook that a store names wait for a yes")
def watched_of_strangers(folder: Path) -> str:
    """Serve a store that names a folder and an address, and look."""
    learned(folder)
    (folder / "private").mkdir()
    named = {"path": str(folder / "private"), "minutes": 0.1, "is_from_start": False}
    hostile = {"folders": [named], "webhook": "http://127.0.0.1:9/", "with_text": True}
    (folder / "s" / "watched.json").write_text(json.dumps(hostile | {"secret": "x"}))
    with Store.open(folder / "s") as store:
        watcher = Watcher.of(Site(store, {}, roots=AllowedRoots(())))
        watcher.look()
        assert (watcher.folders, watcher.webhook) == ({}, "")
        assert watcher.offer is not None
        refused = refusal(lambda: watcher.answer_offer(is_wanted=True))
    assert "in no folder that this server may read" in refused, refused
    return "a folder and an address, asked about"


TOOLS = """
def reply(messages):
    from langgraph.prebuilt import ToolNode
    return ToolNode([print]).invoke(messages)
class Shop:
    def run(self, messages): return reply(messages)
"""
SHAPES = {
    "shop_of_class": f"{TOOLS}\ndef answer(m, s): return Shop().run(m)",
    "shop_of_method": f"{TOOLS}\nshop = Shop()\ndef answer(m, s): return shop.run(m)",
    "shop_of_neighbour": "from tools_beside import reply\ndef answer(m, s): return reply(m)",
    "shop_later": "def answer(m, s):\n  import tools_beside\n  return tools_beside.reply(m)",
    "shop_of_names": "import langgraph.prebuilt as p\ndef answer(m, s): return getattr(p, 'Tool')",
    "shop_of_object": "class B:\n  name = 'b'\n  async def reply(self, r): return r\nanswer = B()",
}


@case("42.1.15", "tools behind an assistant are seen whatever way leads to them")
def tools_behind(folder: Path) -> str:
    """Import assistants that reach tools by classes, neighbours, objects and names."""
    (folder / "tools_beside.py").write_text(TOOLS)
    for name, code in SHAPES.items():
        (folder / f"{name}.py").write_text(code)
    sys.path.insert(0, str(folder))
    try:
        for name in SHAPES:
            assistant: Any = build_assistant(import_module(name).answer, name)
            assert assistant.acts, name
    finally:
        sys.path.remove(str(folder))
        for name in (*SHAPES, "tools_beside"):
            sys.modules.pop(name, None)
    return f"{len(SHAPES)} shapes seen"


@case("42.1.16", "a link beside a proof's result, and a wrong line of people's, are refused first")
def links_beside(folder: Path) -> str:
    """Put links where a proof writes."""
    (folder / "theirs").mkdir()
    names = ("r-edits", "r-people", "r.html", "r-pairs.parquet")
    for name in names:
        (folder / name).symlink_to(folder / "theirs")
        assert "it is a link" in refusal(require_writable_places, folder / "r.json"), name
        (folder / name).unlink()
    (folder / "r-people").mkdir()
    (folder / "r-people" / "choices.jsonl").write_text('{"key": "a", "choice": "5"}\n')
    assert "is no choice" in refusal(require_writable_places, folder / "r.json")
    (folder / "todo.jsonl").write_text("my own\n")
    assert "did not write" in refusal(FileAssistant.of, folder)
    return f"{len(names)} links and 2 files"


@case("42.2.8", "results of commands that this machine didn't write are none")
def results_of_strangers(folder: Path) -> str:
    """Put odd results, and records of commands that remove files, into a store."""
    ended = folder / "s" / "commands" / "ended"
    ended.mkdir(parents=True)
    plain = {"words": "w", "arguments": ["score"], "back": "/", "began": "", "state": "done"}
    odd = ({"told": [1]}, {"words": 5}, {"back": "javascript:alert(1)"}, {"began": 5}, {})
    for number, changes in enumerate(odd):
        whole = plain | {"told": {}, "lines": []} | changes
        (ended / f"{number}.json").write_text(json.dumps(whole))
    record = plain | {"remove": [str(folder / "s" / "runs")], "pid": "1"}
    (ended.parent / "a.json").write_text(json.dumps(record))
    children = Children(ended.parent)
    children.find_again()
    assert (children.by_id, children.set_aside) == ({}, len(odd))
    return f"{len(odd)} set aside"


CHANGES = (
    "UPDATE runs SET started = '999999999999'",
    "UPDATE spans SET ms = x'00'",
    "UPDATE facts SET payload = x'7b7d'",
    "UPDATE facts SET id = x'00'",
    "INSERT INTO annotators VALUES ('a', x'00', 'd', x'00', '/')",
)


@case("42.2.9", "a store that somebody changed is told as damaged, by commands and pages")
def changed_stores(folder: Path) -> str:
    """Change values of a store to what pollex never writes."""
    learned(folder)

    async def statuses(store: Store) -> set[int]:
        async with client_of(made_app(store)) as client:
            pages = ("/", "/runs", "/pass-on", "/conversations")
            return {(await client.get(page, headers=HTML)).status_code for page in pages}

    for number, change in enumerate(CHANGES):
        place = shutil.copytree(folder / "s", folder / f"s{number}")
        with closing(sqlite3.connect(place / DATABASE_FILE_NAME)) as database:
            database.execute(change)
            database.commit()
        for verb in (("runs",), ("trace", "last")):
            try:
                told = run(folder, *verb, "--store", place).err
            except AssertionError as ended:
                told = str(ended)
            assert "unexpected" not in told, (change, verb)
        with Store.open(place) as store:
            assert 500 not in asyncio.run(statuses(store)), change
    return f"{len(CHANGES)} changes"


@case("42.2.10", "what a tool doesn't take, and lines of a host that are none, are told in words")
def foreign_lines(folder: Path) -> str:
    """Push what is no request of a tool, and read a reply that is too long."""
    contents = ("5", "null", '{"a": 1}', "[1]", '[{"trace_id": "\\ud800"}]', "[" * 100_000)
    for content in contents:
        (folder / "x.json").write_text(content)
        for tool in ("langfuse", "mlflow", "opik"):
            told = refusal(
                lambda to: push_scores(
                    folder / "x.json", to=to, progress=NullProgress(), environment={}
                ),
                tool,
            )
            assert "unexpected" not in told, (content, tool)
    reply = {"text": "x" * 1_000_001, "calls": [], "cost": 0.0, "seconds": 0.0}
    with contextlib.suppress(ValueError):
        raise AssertionError(parse_host_message(json.dumps({"id": 1, "found": reply}).encode()))
    assert name_signal(40) == "40"
    return f"{3 * len(contents)} files"


@case("42.1.17", "a reader sees no folder of a run, wherever the store lies now")
def folders_of_runs(folder: Path) -> str:
    """Show a run that worked elsewhere to somebody with a link to read."""

    async def shown() -> str:
        with Store.open(folder / "s") as store:
            moved = {"folder": "/srv/secret", "command": "pollex score /srv/secret/a.jsonl"}
            named = store.begin("score", arguments=moved, fingerprint={}, versions={}).id
            digest = f"{Seal.of(store.folder).name}:{Seal.of(store.folder).sign('guest', 'x')}"
            store.keep([AnnotatorRow("a", "Ann", digest, format_current_time(), "/")])
            async with client_of(made_app(store), token="x") as reader:  # noqa: S106 - made up
                answers = [await reader.get(page) for page in (f"/runs/{named}", "/runs")]
            assert {answer.status_code for answer in answers} == {200}
            return "".join(answer.text for answer in answers)

    assert "/srv/secret" not in asyncio.run(shown())
    return "two pages"
