"""Commands that are killed, interrupted or started twice, and what a resume makes of it."""

import os
import shlex
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from small_log import (
    Ended,
    command,
    run_apart,
    same_but_for_time,
    small_log,
    with_embeddings,
    write_log,
)
from small_runs import Learnt, Pollex

from pollex.graphs.context import MAX_CONVERSATIONS_PER_BATCH
from pollex.store.resume import find_run
from pollex.store.store import Store

Begun = subprocess.Popen[str]

WIDTH = 384
"""Numbers of a vector; a record on disk has a few bytes more."""


@contextmanager
def begun(*arguments: object, cwd: Path) -> Iterator[Begun]:
    """A command that is on its way, and gone at the end whatever happens."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command(*arguments), cwd=cwd, **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: Begun) -> Ended:
    """What became of it."""
    out, err = process.communicate(timeout=60)
    return Ended(process.returncode, out, err)


def when(process: Begun, reached: Callable[[], bool]) -> bool:
    """Waits for something that the command does; False where it ended before."""
    while not reached():
        if process.poll() is not None:
            return False
        time.sleep(0.005)
    return True


def holds(store: Path, sql: str) -> Callable[[], bool]:
    """Whether a query of the store's database finds something: it tells how far a run is."""

    def look() -> bool:
        if not (store / "store.sqlite").exists():
            return False
        # one that may write would fold the write-ahead log into the file when it closes, beside the command
        readable = f"file:{store / 'store.sqlite'}?mode=ro"
        with (
            closing(sqlite3.connect(readable, uri=True)) as database,
            suppress(sqlite3.OperationalError),
        ):
            return database.execute(sql).fetchone() is not None
        return False  # it has no tables yet

    return look


def begun_run(store: Path, number: int = 1) -> Callable[[], bool]:
    """Whether the last of so many runs, or their resumes, is running."""
    return holds(
        store,
        f"SELECT 1 FROM runs WHERE status = 'unfinished' AND number = {number} AND roles <> '[]'",
    )


def kill(process: Begun) -> None:
    """As a power cut would."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def rows_of(store: Path, sql: str) -> list[dict[str, Any]]:
    """What the database of a store at rest holds."""
    with Store.open(store) as kept:
        return kept.rows(sql)


def asked_of(store: Path, sql: str) -> list[dict[str, Any]]:
    """What the columns of a store's last run hold."""
    with Store.open(store, read_only=True) as kept:
        return kept.ask(find_run(kept, "last").id, sql)


def test_a_learning_run_that_is_killed_twice_ends_as_an_unbroken_one_and_does_nothing_twice(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    embeddings = {path: path.stat().st_size for path in (store / "embeddings").iterdir()}
    moments = [
        begun_run(store),
        holds(store, "SELECT 1 FROM facts WHERE kind = 'step' AND id = 'deduplicate'"),
    ]
    arguments = ["learn", learnt.log, "--store", store]
    kills = 0
    for number, moment in enumerate(moments):
        with begun(*arguments, *(["--resume"] * (number > 0)), cwd=tmp_path) as process:
            assert when(process, moment), process.communicate()
            kill(process)
            kills += 1
    assert not (tmp_path / "rubrics.json").exists()
    finished = pollex(*arguments, "--resume")
    assert finished.code == 0, finished.err
    assert same_but_for_time(tmp_path / "rubrics.json") == same_but_for_time(learnt.rubrics)
    assert {path: path.stat().st_size for path in (store / "embeddings").iterdir()} == embeddings
    spans = rows_of(
        store, "SELECT name, item, count(*) AS n FROM spans WHERE kind = 'role' GROUP BY name, item"
    )
    extractions = [span["n"] for span in spans if span["name"] == "extract"]
    assert (len(extractions), max(extractions)) == (48, 1)
    assert all(span["n"] <= 2 + kills for span in spans if span["name"].startswith("judge"))
    assert [run["n"] for run in rows_of(store, "SELECT count(*) AS n FROM runs")] == [1]
    assert [
        c["n"] for c in asked_of(store, "SELECT count(*) AS n FROM conversations GROUP BY id")
    ] == [1] * 48


@pytest.mark.nightly
def test_a_kill_between_the_end_of_a_run_and_its_files_is_mended_by_a_resume(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    arguments = ["learn", learnt.log, "--store", store]
    with begun(*arguments, cwd=tmp_path) as process:
        assert when(process, holds(store, "SELECT 1 FROM runs WHERE status = 'done'")), (
            process.communicate()
        )
        kill(process)
    (tmp_path / "rubrics.json").unlink(missing_ok=True)
    before = rows_of(store, "SELECT count(*) AS n FROM spans WHERE kind = 'role'")
    assert pollex(*arguments, "--resume").code == 0
    assert same_but_for_time(tmp_path / "rubrics.json") == same_but_for_time(learnt.rubrics)
    assert rows_of(store, "SELECT count(*) AS n FROM spans WHERE kind = 'role'") == before


MANY = 2 * MAX_CONVERSATIONS_PER_BATCH + 1


@pytest.mark.timeout(300)
@pytest.mark.nightly  # as end_to_end/test_killed_runs.py, with the built-in judge
def test_a_scoring_run_that_is_killed_writes_what_an_unbroken_one_writes(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    texts = [one["messages"] for one in small_log()]
    rows = [{"id": f"s{n}", "messages": texts[n % len(texts)]} for n in range(MANY)]
    log = write_log(tmp_path / "many.jsonl", rows)
    arguments = [
        "score",
        log,
        "--rubrics",
        learnt.rubrics,
        "--out",
        "scores.jsonl",
        "--store",
        store,
    ]
    with begun(*arguments, cwd=tmp_path) as process:
        assert when(process, lambda: any(store.glob("runs/score-*/scores-*.parquet"))), (
            process.communicate()
        )
        kill(process)
    done = {one["conversation"] for one in asked_of(store, "SELECT conversation FROM scores")}
    assert done
    assert len(done) < MANY
    assert not (tmp_path / "scores.jsonl").exists()
    counted = "SELECT conversation AS id, count(*) AS n FROM answers GROUP BY conversation"
    before = {one["id"]: one["n"] for one in asked_of(store, counted)}
    assert run_apart(*arguments, "--resume", cwd=tmp_path).code == 0
    after = {one["id"]: one["n"] for one in asked_of(store, counted)}
    assert {id_: after[id_] for id_ in done} == {id_: before[id_] for id_ in done}
    assert [
        one["n"]
        for one in asked_of(store, "SELECT count(*) AS n FROM scores GROUP BY conversation")
    ] == [1] * MANY
    other = with_embeddings(tmp_path / "other", learnt.store / "embeddings")
    assert pollex(*arguments[:-1], other, "--out", "unbroken.jsonl").code == 0
    assert (tmp_path / "scores.jsonl").read_bytes() == (tmp_path / "unbroken.jsonl").read_bytes()


def test_ctrl_c_and_sigterm_end_a_run_that_the_printed_command_goes_on_with(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    arguments = ["learn", str(learnt.log), "--store", str(store)]
    for stop in (signal.SIGINT, signal.SIGTERM):
        with begun(*arguments, cwd=tmp_path) as process:
            assert when(process, begun_run(store)), process.communicate()
            process.send_signal(stop)
            found = ended(process)
        assert found.code == 130, found
        assert "Traceback" not in found.err
        printed = found.err.splitlines()[-1].removeprefix("Go on with: ")
        arguments = shlex.split(printed)[1:]
        assert arguments == ["learn", str(learnt.log), "--store", str(store), "--resume"]
        (run,) = rows_of(store, "SELECT status FROM runs")
        assert run["status"] == "interrupted"
    assert pollex(*arguments).code == 0
    assert same_but_for_time(tmp_path / "rubrics.json") == same_but_for_time(learnt.rubrics)


@pytest.mark.nightly
def test_a_run_that_is_to_outlive_its_terminal_does(
    tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    """As under nohup: what was ignored before stays ignored, at the start and in the run."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with begun("learn", learnt.log, "--store", store, cwd=tmp_path) as process:
            signal.signal(signal.SIGHUP, before)
            process.send_signal(signal.SIGHUP)
            assert when(process, begun_run(store)), process.communicate()
            process.send_signal(signal.SIGHUP)
            found = ended(process)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert found.code == 0, found
    assert same_but_for_time(tmp_path / "rubrics.json") == same_but_for_time(learnt.rubrics)


def test_ctrl_c_is_heard_while_the_built_in_roles_keep_the_event_loop_busy(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.jsonl", small_log(200))
    store = tmp_path / "kept"
    with begun("learn", log, "--store", store, cwd=tmp_path) as process:
        assert when(process, begun_run(store)), process.communicate()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Stopping")
        found = ended(process)
    assert found.code == 130
    assert not (tmp_path / "rubrics.json").exists()
    assert "Go on with: pollex learn" in found.err
    (run,) = rows_of(store, "SELECT status FROM runs")
    assert run["status"] == "interrupted"


def test_a_running_run_is_shown_and_left_alone_beside_others_and_a_resume_needs_the_same_data_and_settings(
    pollex: Pollex, tmp_path: Path, learnt: Learnt, store: Path
) -> None:
    with begun("learn", learnt.log, "--store", store, cwd=tmp_path) as process:
        assert when(process, begun_run(store)), process.communicate()
        process.send_signal(signal.SIGSTOP)
        refused = pollex("learn", learnt.log, "--store", store, "--resume")
        assert refused.code == 75
        assert f"process {process.pid} works on learn-1-" in refused.err
        for arguments in (["runs"], ["trace", "last"]):
            shown = pollex(*arguments, "--store", store)
            assert (shown.code, "unfinished" in shown.out) == (0, True)
        beside = pollex(
            "score",
            learnt.log,
            "--rubrics",
            learnt.rubrics,
            "--store",
            store,
            "--out",
            "beside.jsonl",
        )
        assert beside.code == 0, beside.err
        kill(process)
    rows = small_log()
    rows[0]["thumbs"], rows[1]["thumbs"] = "down", "up"
    relabelled = write_log(tmp_path / "relabelled.jsonl", rows)
    for arguments, changed in (
        ([learnt.log, "--seed", 1], "seed: 0, and now 1"),
        ([learnt.log, "--budget", 3], "budget: not set, and now 3, 3"),
        ([relabelled], "data: "),
    ):
        refused = pollex("learn", *arguments, "--store", store, "--resume")
        assert refused.code == 1
        assert changed in refused.err
        assert "was started with other settings" in refused.err
    assert pollex("learn", learnt.log, "--store", store, "--resume").code == 0
    assert same_but_for_time(tmp_path / "rubrics.json") == same_but_for_time(learnt.rubrics)


def test_a_reader_that_goes_away_is_no_error(learnt: Learnt, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    arguments = command("trace", "last", "--store", learnt.store)
    process = subprocess.Popen(
        arguments, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_told_as_one_and_not_as_a_fault(learnt: Learnt, tmp_path: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        arguments = command("runs", "--store", learnt.store, "--json")
        process = subprocess.Popen(
            arguments, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True
        )
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the disk is full → make room" in err
    assert "unexpected" not in err
