"""What never ends, or takes all memory: queries, files, templates, settings; and what forgetting leaves."""

import gzip
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from fault_cases import case
from fault_cases.commands import bikes, learned, run, written
from fault_cases.machine import conversation
from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs
from pollex.rooms.remedy.services.prompt_text import PromptText
from pollex.text import read_file_bytes

TOLD = "My cousin Ottokar keeps seventeen alpacas behind the lighthouse."
WORDS = re.compile(rb"ottokar|alpacas|lighthouse|anna-1", re.IGNORECASE)
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT * FROM n"


def chats(folder: Path) -> str:
    """Make a small database, and return what names it as a source."""
    with closing(sqlite3.connect(folder / "chats.db")) as connection:
        connection.execute("CREATE TABLE chats(id TEXT, text TEXT)")
        connection.execute("INSERT INTO chats VALUES ('a', 'Hi.')")
        connection.commit()
    return f"sqlite:{folder / 'chats.db'}"


@case(
    "42.2",
    "after `forget --rewrite` no byte of the folder has a word of the conversation, but for the log",
)
def forgotten_is_gone(folder: Path) -> str:
    """Learn, score in three formats, forget, and search every byte."""
    learned(folder)
    rows = bikes(20)
    rows[0]["id"], rows[0]["messages"][-1]["content"] = "anna-1", TOLD
    log = written(folder / "log.jsonl", rows)
    for name in ("s.jsonl", "s.csv", "s.parquet"):
        run(folder, "score", log, "--rubrics", "r.json", "--out", name, "--store", "s")
    run(folder, "forget", "--conversation", "anna-1", "--rewrite", "--store", "s")
    log.unlink()
    files = [path for path in folder.rglob("*") if path.is_file()]
    left = [path.name for path in files if WORDS.search(path.read_bytes())]
    assert not left, left
    return f"{len(files)} files, none"


@case("42.3", "what forgetting can't look into is named within seconds, and all else is forgotten")
def forgetting_among_bombs(folder: Path) -> str:
    """Forget beside a packed bomb, nesting without end, damaged files, and pages that are slow to take apart."""
    learned(folder)
    reports = folder / "reports"
    reports.mkdir()
    (reports / "bomb.html.gz").write_bytes(gzip.compress(b"x" * 99_000_000))
    (reports / "deep.json").write_text("[" * 300_000)
    (reports / "p.parquet").write_bytes(b"PAR1 nothing")
    (reports / "z.jsonl.gz").write_bytes(b"\x1f\x8b nothing")
    for name, begins in (("a", "<script "), ("b", "<tr "), ("c", "<")):
        (reports / f"{name}.html").write_text(begins * 150_000)
    begun = time.monotonic()
    forget = ("forget", "reports", "--conversation", "bike-001", "--rewrite", "--store", "s")
    told = run(folder, *forget, "--json", code=3)
    seconds = time.monotonic() - begun
    left = {Path(path).name for path in json.loads(told.out)["left"]}
    assert left == {"bomb.html.gz", "deep.json", "p.parquet", "z.jsonl.gz"}, left
    assert "bike-001" not in (folder / "r.json").read_text()
    assert seconds < 30, f"{seconds:.0f} s"
    return f"{len(left)} of 7 files are not looked into, {seconds:.1f} s"


@case("42.3", "a query that never ends, or that takes all memory, ends in words after its seconds")
def endless_queries(folder: Path) -> str:
    """Ask for endless rows, cross joins and a value of 900 MB, each with a second's time."""
    source = chats(folder)
    options = ReadOptions(query_seconds=1)
    many = ", ".join(f"json_each('[{'1,' * 99}1]') AS n{number}" for number in range(9))
    queries = (ENDLESS, f"SELECT count(*) FROM chats, {many}", "SELECT randomblob(900000000)")  # noqa: S608
    begun = time.monotonic()
    for query in queries:
        with pytest.raises(BadInput, match=r"longer than 1 s|too big|memory"):
            read_logs(f"{source}?{query}", options=options)
    with pytest.raises(WrongUse, match="not a query that reads"):
        read_logs(f"{source}?{'/* a */ -- b' + chr(10) + ' ('}{'/* a */ ' * 60}/*", options=options)
    with pytest.raises(WrongUse) as told:
        read_logs("postgres://h/d?PASSWORD=geheim?SELECT 1")
    assert "geheim" not in str(told.value)
    seconds = time.monotonic() - begun
    assert seconds < 20, f"{seconds:.0f} s"
    return f"{len(queries)} queries in {seconds:.0f} s"


@case("42.3", "Ctrl-C and SIGTERM end a query within 2 s, and no process is left")
def interrupted_queries(folder: Path) -> str:
    """Send each signal to a command that waits for an endless query."""
    source = chats(folder)
    slowest = 0.0
    code = "from pollex.cli.main import main; main()"
    for number in (signal.SIGINT, signal.SIGTERM):
        command = [sys.executable, "-c", code, "inspect", f"{source}?{ENDLESS}"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, start_new_session=True, **quiet) as process:  # noqa: S603
            child = _child_of(process.pid)
            begun = time.monotonic()
            process.send_signal(number)
            process.wait(10)
            slowest = max(slowest, time.monotonic() - begun)
        assert not _runs(child), f"process {child} is left"
    assert slowest < 2, f"{slowest:.1f} s"
    return f"{slowest:.1f} s at most"


def _child_of(parent: int) -> int:
    """Return the process of the query, once it runs."""
    for _ in range(200):
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        if children:
            time.sleep(0.5)
            return int(children[0])
        time.sleep(0.05)
    raise AssertionError("no process was started")


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@case("42.3", "pipes, devices and the kernel's files are refused wherever a file is read whole")
def files_without_end(folder: Path) -> str:
    """Give them as prompt, rubric set, domain profile and starter."""
    log = written(folder / "log.jsonl", [conversation("a", "Hi.", "Hi!")])
    os.mkfifo(pipe := folder / "pipe")
    begun = time.monotonic()
    for place in (pipe, "/dev/zero", "/proc/kmsg"):
        with pytest.raises(OSError, match="a pipe or a device"):
            read_file_bytes(place)
    for words in (
        ("score", log, "--rubrics"),
        ("learn", log, "--rubrics-from"),
        ("learn", log, "--domain"),
    ):
        ended = run(folder, *words, pipe, code=2 if "--domain" in words else 1)
        assert "a pipe or a device" in ended.said, ended.said
    return f"{time.monotonic() - begun:.1f} s"


@case("42.3", "a template with many places is matched in linear time")
def many_places(folder: Path) -> str:  # noqa: ARG001 - as every case
    """Match thirty places against 200,000 characters that don't fit."""
    template = PromptText(" ".join(f"a {{p{number}}}" for number in range(30)) + " end")
    begun = time.monotonic()
    assert template.values_in("a " * 100_000) is None
    seconds = time.monotonic() - begun
    assert seconds < 1, f"{seconds:.1f} s"
    return f"{1000 * seconds:.0f} ms"


@case("42.3", "settings that say how much is done are bounded")
def bounded_settings(folder: Path) -> str:
    """Give a billion for each."""
    log = written(folder / "log.jsonl", [conversation("a", "Hi.", "Hi!")])
    names = ("back", "people", "replies", "tried", "others")
    for name in names:
        given = (
            "--rubrics",
            "r.json",
            "--prompt",
            "p.md",
            "--target",
            "a",
            "--set",
            f"{name}={10**9}",
        )
        ended = run(folder, "remedy", "run", log, *given, code=2)
        assert f"{name} can't be 1000000000" in ended.said, ended.said
    with pytest.raises(WrongUse, match="query_seconds"):
        replace(ReadOptions(), query_seconds=10**9)
    return f"{len(names) + 1} of {len(names) + 1}"


@case(
    "42.3",
    "a current folder whose name is no UTF-8 works, and workers end without a word on standard error",
)
def odd_folder_and_workers(folder: Path) -> str:
    """Score by two workers there, and read the scores' file again."""
    odd = folder / os.fsdecode(b"n\xff\xfe")
    odd.mkdir()
    learned(odd)
    code = "from pollex.cli.main import main; main()"
    words = [
        "score",
        "log.jsonl",
        "--rubrics",
        "r.json",
        "--out",
        "s.parquet",
        "--store",
        "s",
        "--workers",
        "2",
    ]
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, *words, "--json"],
        cwd=odd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "leaked" not in done.stderr, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]), done.stdout
    return "2 workers, no line"


@case("42.3", "a signal within the first second, while a command imports, ends it in words")
def interrupted_imports(folder: Path) -> str:
    """Send each signal to a command as soon as Python reads pollex."""
    words = ("learn", "log.jsonl", "--out", "r.json")
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        # the module that imports all others is about to be looked for
        code = (
            "import os, sys\n"
            "class Sends:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            f"        if name == 'pollex.cli.main': os.kill(os.getpid(), {int(number)})\n"
            "sys.meta_path.insert(0, Sends())\n"
            "from pollex.cli.entry import main; main()"
        )
        ended = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code, *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 130, ended.stderr
        assert ended.stderr.startswith("Stopped: interrupted\nGo on with: "), ended.stderr
    return f"{len(numbers)} of {len(numbers)}"


@case("42.3", "lists within lists of a Parquet file and of a query are refused in words at once")
def lists_within_lists(folder: Path) -> str:
    """Read 60 levels from each."""
    deep = "[" * 60 + "1" + "]" * 60
    log = folder / "deep.parquet"
    begun = time.monotonic()
    duckdb.sql(f"COPY (SELECT 'a' AS id, {deep} AS deep) TO '{log}' (FORMAT parquet)")
    with duckdb.connect(str(folder / "chats.duckdb")) as connection:
        connection.execute("CREATE TABLE chats AS SELECT 'a' AS id")
    query = f"duckdb:{folder / 'chats.duckdb'}?SELECT id, {deep} AS deep FROM chats"  # noqa: S608
    for source in (str(log), query):
        with pytest.raises(BadInput, match="deep has lists within lists, 60 deep"):
            read_logs(source)
    seconds = time.monotonic() - begun
    assert seconds < 20, f"{seconds:.0f} s"
    return f"2 of 2 in {seconds:.1f} s"


@case("42.3", "a rubric set of 60,000 rubrics, or of more than 64 MB, is refused within seconds")
def a_huge_set(folder: Path) -> str:
    """List a set with so many small rubrics, and one with large ones."""
    learned(folder)
    path = folder / "r.json"
    stored = json.loads(path.read_text())
    small = {"id": "a", "text": "b"}
    begun = time.monotonic()
    for rubric, words in ((small, "60000 rubrics"), (small | {"text": "b" * 1200}, "than 64 MB")):
        path.write_text(json.dumps(stored | {"rubrics": [rubric] * 60_000}))
        ended = run(folder, "rubrics", "list", "r.json", code=1)
        assert words in ended.said, ended.said
    seconds = time.monotonic() - begun
    assert seconds < 20, f"{seconds:.0f} s"
    return f"2 sets in {seconds:.1f} s"
