"""Children that die on purpose."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Child = Callable[..., "subprocess.CompletedProcess[str]"]

PREAMBLE = """
import asyncio, os, resource, signal, sys
from pathlib import Path
from pollex.errors import *
from pollex.store.ledger import StoreCallLedger
from pollex.store.store import Store
from pollex.store import resume
folder = Path(sys.argv[1])

def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def child(tmp_path: Path) -> Child:
    """Runs code in a process of its own, with `folder`, a store's place, and `die()` at hand."""

    def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", PREAMBLE + code, str(tmp_path / "kept"), *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the store of a test is, also for its children."""
    return tmp_path / "kept"
