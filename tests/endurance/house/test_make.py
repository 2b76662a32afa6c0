"""`make` installs once, notices what changed, and says what it lacks."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from rooms import ROOT

# It takes the interpreter's place, writes down what it is asked to do, and makes environments with
# itself inside.
INTERPRETER = """#!/bin/sh
echo "$(basename "$0") $@" >> {calls}
case "$1 $2" in "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/pollex" ;; esac
case "$*" in *"{failing}"*) exit 1 ;; esac
"""
VENV = "-m venv .venv"
LOCK = "--requirement requirements.lock"
EDITABLE = "--editable ."
TESTS = "-m pytest"
HALF = "--requirement .venv/half.txt"
DEMO = "pollex demo"
FILES = ("Makefile", "requirements.lock", "pyproject.toml")


class Checkout:
    """A folder with the files that `make` looks at, and an interpreter that only takes notes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder.parent / "calls"
        folder.mkdir()
        for name in FILES:
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
        clean = {
            name: value
            for name, value in os.environ.items()
            if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
        }
        command = ["make", *(arguments or ("test", f"PYTHON={self.folder.parent}/python"))]
        return subprocess.run(
            command, cwd=self.folder, env=clean, capture_output=True, text=True, check=False
        )

    def done(self, target: str = "test") -> list[str]:
        """Runs make; what the interpreter was asked, the checks of its version left out."""
        self.calls.unlink(missing_ok=True)
        self.make(target, f"PYTHON={self.folder.parent}/python")
        steps = (VENV, HALF, LOCK, EDITABLE, DEMO, TESTS)
        return [
            step
            for line in self.calls.read_text("utf-8").splitlines()
            for step in steps
            if step in line
        ]


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


def test_an_installation_or_tests_that_fail_end_make_and_are_tried_again(
    checkout: Checkout,
) -> None:
    for failing, done in (
        (LOCK, [VENV, LOCK]),
        (EDITABLE, [VENV, LOCK, EDITABLE]),
        (TESTS, [EDITABLE, TESTS]),
        ("nothing at all", [TESTS]),
    ):
        checkout.interpreter(failing)
        assert checkout.done() == done
        assert (checkout.make().returncode == 0) == (done == [TESTS])


def test_everything_is_installed_the_first_time_and_later_what_changed_whatever_its_time(
    checkout: Checkout,
) -> None:
    assert checkout.done() == [VENV, LOCK, EDITABLE, TESTS]
    for name in FILES:
        (checkout.folder / name).touch()
    assert checkout.done() == [TESTS]
    checkout.append("pyproject.toml", "# one more\n")
    assert checkout.done() == [EDITABLE, TESTS]
    checkout.append("requirements.lock", "one-more==1.0\n")
    assert checkout.done() == [VENV, LOCK, EDITABLE, TESTS]
    checkout.folder = checkout.folder.rename(checkout.folder.with_name("moved"))
    assert checkout.done() == [VENV, LOCK, EDITABLE, TESTS], "its commands would run the old place"


def test_the_demo_installs_half_of_it_and_tests_what_is_missing(checkout: Checkout) -> None:
    assert checkout.done("demo") == [VENV, HALF, EDITABLE, DEMO]
    half = (checkout.folder / ".venv/half.txt").read_text("utf-8")
    assert "\ntorch==" in half
    assert "\npytest==" not in half
    assert checkout.done("demo") == [DEMO]
    assert checkout.done() == [VENV, LOCK, EDITABLE, TESTS]
    assert checkout.done("demo") == [DEMO]
    checkout.append("requirements.lock", "one-more==1.0\n")
    assert checkout.done("demo") == [VENV, HALF, EDITABLE, DEMO]


def test_make_alone_says_what_can_be_made(checkout: Checkout) -> None:
    shown = checkout.make("help").stdout
    assert all(f"make {target} " in shown for target in ("demo", "test", "check"))
