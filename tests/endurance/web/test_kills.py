"""A server that is killed while people label, beside a run that writes."""

import json
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import httpx2
from web_site import made_store

from pollex.store.store import Store
from pollex.store.tables import ScoreRow

PEOPLE = 4
CONVERSATIONS = 60
KILLED_AFTER = (1, 17, 40)
QUEUE = {
    "name": "a queue",
    "run": "learn-1",
    "overlap": PEOPLE,
    "repeat_share": 0,
    "random_share": 0,
}


def serving(folder: Path) -> tuple[subprocess.Popen[str], httpx2.Client]:
    """Start a server; the process, and a client that brings the token."""
    command = [
        sys.executable,
        "-m",
        "pollex",
        "serve",
        "--store",
        str(folder),
        "--port",
        "0",
        "--no-open",
        "--json",
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    base, _, token = json.loads(server.stdout.readline())["url"].partition("/enter?token=")
    return server, httpx2.Client(
        base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=60
    )


def label(
    client: httpx2.Client, queue: str, who: str, told: list[str], enough: Event, after: int
) -> None:
    """Label until the server is gone; what was answered is noted."""
    try:
        while lease := client.post(f"/api/queues/{queue}/next", json={"who": who}).json()["lease"]:
            given = {"lease": lease, "who": who, "value": "up"}
            told.append(client.post("/api/labels", json=given).json()["label"])
            if len(told) >= after:
                enough.set()
    except httpx2.HTTPError:
        pass


def write(store: Store, run: str, over: Event) -> int:
    """Write as a run does until it is over."""
    count = 0
    while not over.wait(0.01):
        store.put([ScoreRow(run, f"conversation {count}", 1.0, "positive", True, 0.9)])
        store.pulse(run, {"stages": {"judge": {"done": count, "total": 10_000}}, "used": {}})
        store.flush()
        count += 1
    return count


def test_every_label_that_was_answered_is_there_after_a_kill_beside_a_run_that_writes(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ".pollex"
    made_store(folder, n=CONVERSATIONS).close()
    told: list[str] = []
    queue = ""
    over = Event()
    with Store.open(folder) as store, ThreadPoolExecutor(PEOPLE + 1) as pool:
        run = store.begin("score", arguments={}, fingerprint={}, versions={}).id
        written = pool.submit(write, store, run, over)
        try:
            for after in KILLED_AFTER:
                server, client = serving(folder)
                queue = queue or client.post("/api/queues", json=QUEUE).json()["queue"]
                enough = Event()
                people = [
                    pool.submit(label, client, queue, f"p{n}", told, enough, after)
                    for n in range(PEOPLE)
                ]
                assert enough.wait(120)
                server.send_signal(signal.SIGKILL)
                assert server.wait(30) == -signal.SIGKILL
                for one in people:
                    one.result(60)
        finally:
            over.set()
        scores = written.result()
        assert len(store.ask(run, "SELECT * FROM scores")) == scores > 0, (
            "the run went on meanwhile"
        )
    with sqlite3.connect(folder / "store.sqlite") as kept:
        labels = {label for (label,) in kept.execute("SELECT id FROM labels")}
        answered = kept.execute(
            "SELECT l.id, l.text_hash, l.annotator FROM sheets AS s JOIN labels AS l ON l.id = s.label"
        ).fetchall()
    assert len(told) >= max(KILLED_AFTER)
    assert set(told) <= {label for label, _, _ in answered}, (
        "with the conversation that was given out"
    )
    assert len(labels) - len(answered) <= len(KILLED_AFTER), (
        "at a kill one was on its way, and nobody was told"
    )
    assert len({(text, who) for _, text, who in answered}) == len(answered), "nobody answered twice"
