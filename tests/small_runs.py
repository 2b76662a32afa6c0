"""Fixtures around the small log: one run of `learn` for all tests, and commands in this process."""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from small_log import Ended, small_log, with_embeddings, write_log

from pollex.cli.main import main
from pollex.errors import OPTION_SPELLER, spell_as_arguments
from pollex.runs.workspace import STOP_SIGNALS


class Learnt(NamedTuple):
    """A run of `learn` over the small log. Tests read it and don't write into it."""

    log: Path
    rubrics: Path
    store: Path
    ended: Ended


Pollex = Callable[..., Ended]


@contextlib.contextmanager
def same_environment() -> Iterator[None]:
    """Takes back what is done to the environment: commands switch tracing off in theirs."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """Each test leaves the environment as it was."""
    with same_environment():
        yield


def run_here(*arguments: object) -> Ended:
    """A command in this process: as quick as it gets, with the exit code and both streams of a real one."""
    out = io.StringIO()
    err = io.StringIO()
    handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    with (
        same_environment(),
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["pollex", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    OPTION_SPELLER.set(spell_as_arguments)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    assert isinstance(ended.value.code, int)
    return Ended(ended.value.code, out.getvalue(), err.getvalue())


@pytest.fixture
def pollex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pollex:
    """Runs commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return run_here


@pytest.fixture(scope="session")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learnt]:
    """Once for all tests, in whatever folder of tests they are; whatever wrote into it fails at the end."""
    folder = tmp_path_factory.getbasetemp() / "learnt"
    log = folder / "log.jsonl"
    rubrics = folder / "rubrics.json"
    store = folder / "store"
    if not folder.exists():
        folder.mkdir()
        write_log(log, small_log())
        ended = run_here("learn", log, "--out", rubrics, "--store", store, "--json")
        assert ended.code == 0, ended.err
        (folder / "out").write_text(ended.out, encoding="utf-8")
        (folder / "err").write_text(ended.err, encoding="utf-8")
    out, err = ((folder / name).read_text(encoding="utf-8") for name in ("out", "err"))
    before = kept_in(folder)
    yield Learnt(log, rubrics, store, Ended(0, out, err))
    assert kept_in(folder) == before, (
        "a test wrote into what all share: it takes the fixture `store`"
    )


def kept_in(folder: Path) -> dict[str, bytes]:
    """Names of runs and of files beside the store, with what these hold."""
    runs = {path.name: b"" for path in (folder / "store" / "runs").iterdir()}
    return runs | {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def store(tmp_path: Path, learnt: Learnt) -> Path:
    """A new store that has the small log's embeddings."""
    return with_embeddings(tmp_path / "kept", learnt.store / "embeddings")
