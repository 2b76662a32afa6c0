"""`make` installs once, notices what changed, and says what it lacks."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from rooms import ROOT

# It takes the interpreter's place, writes down what it is asked to do, and makes environments with itself inside.
INTERPRETER = """#!/bin/sh
echo "$@" >> {calls}
case "$1 $2" in "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;; esac
case "$*" in *"{failing}"*) exit 1 ;; esac
"""
VENV, LOCK, EDITABLE, TESTS = "-m venv .venv", "--requirement requirements.lock", "--editable .", "-m pytest"


class Checkout:
    """A folder with the files that `make` looks at, and an interpreter that only takes notes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder.parent / "calls"
        folder.mkdir()
        for name in ("Makefile", "requirements.lock", "pyproject.toml"):
            shutil.copy(ROOT / name, folder)
        self.interpreter(failing="nothing at all")

    def interpreter(self, failing: str) -> None:
        """From now on, calls with `failing` in their arguments fail."""
        python = self.folder.parent / "python"
        python.write_text(INTERPRETER.format(calls=self.calls, failing=failing), "utf-8")
        python.chmod(0o755)
        if (self.folder / ".venv").exists():
            shutil.copy(python, self.folder / ".venv/bin/python")

    def append(self, name: str, text: str) -> None:
        """Changes a file, and sets its time back: what counts is what it says."""
        path = self.folder / name
        path.write_text(path.read_text("utf-8") + text, "utf-8")
        os.utime(path, (0, 0))

    def make(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs make without what an outer make hands down."""
        clean = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        command = ["make", *(arguments or ("test", f"PYTHON={self.folder.parent}/python"))]
        return subprocess.run(command, cwd=self.folder, env=clean, capture_output=True, text=True, check=False)

    def done(self) -> list[str]:
        """What the interpreter was asked since the last time, the checks of its version left out."""
        asked = self.calls.read_text("utf-8").splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        steps = (VENV, LOCK, EDITABLE, TESTS)
        return [step for line in asked for step in steps if step in line]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "a checkout")


@pytest.mark.parametrize("python", ["false", "no-such-python"])
def test_an_interpreter_that_is_too_old_or_missing_is_named_and_nothing_is_made(
    python: str, checkout: Checkout
) -> None:
    shown = checkout.make("test", f"PYTHON={python}")
    assert shown.returncode != 0
    assert f"needs Python 3.11 or newer; {python} is older or missing" in shown.stderr
    assert "make test PYTHON=" in shown.stderr
    assert not (checkout.folder / ".venv").exists()


@pytest.mark.parametrize(
    ("step", "tried_again"), [(LOCK, [VENV, LOCK, EDITABLE, TESTS]), (EDITABLE, [EDITABLE, TESTS])]
)
def test_a_failed_installation_ends_make_and_is_tried_again(
    step: str, tried_again: list[str], checkout: Checkout
) -> None:
    checkout.interpreter(failing=step)
    assert checkout.make().returncode != 0
    assert checkout.done()[-1] == step
    checkout.interpreter(failing="nothing at all")
    assert checkout.make().returncode == 0
    assert checkout.done() == tried_again


def test_failing_tests_fail_make(checkout: Checkout) -> None:
    checkout.interpreter(failing=TESTS)
    assert checkout.make().returncode != 0


def test_the_first_time_everything_is_installed_and_the_second_time_nothing(checkout: Checkout) -> None:
    checkout.make()
    assert checkout.done() == [VENV, LOCK, EDITABLE, TESTS]
    checkout.make()
    assert checkout.done() == [TESTS]


def test_a_changed_lock_is_installed_whatever_its_time(checkout: Checkout) -> None:
    checkout.make()
    checkout.done()
    checkout.append("requirements.lock", "one-more==1.0\n")
    checkout.make()
    assert checkout.done() == [VENV, LOCK, EDITABLE, TESTS]


def test_changed_packages_are_mapped_again_without_the_lock(checkout: Checkout) -> None:
    checkout.make()
    checkout.done()
    checkout.append("pyproject.toml", "# one more\n")
    checkout.make()
    assert checkout.done() == [EDITABLE, TESTS]


def test_a_touched_file_installs_nothing(checkout: Checkout) -> None:
    checkout.make()
    checkout.done()
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        (checkout.folder / name).touch()
    checkout.make()
    assert checkout.done() == [TESTS]


def test_a_moved_folder_is_installed_again_for_its_commands_would_run_the_old_place(checkout: Checkout) -> None:
    checkout.make()
    checkout.done()
    checkout.folder = checkout.folder.rename(checkout.folder.with_name("moved"))
    checkout.make()
    assert checkout.done() == [VENV, LOCK, EDITABLE, TESTS]


def test_make_alone_says_what_can_be_made(checkout: Checkout) -> None:
    shown = checkout.make("help").stdout
    assert all(f"make {target} " in shown for target in ("demo", "test", "check"))
