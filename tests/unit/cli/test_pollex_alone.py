"""`pollex` alone: it opens the browser where somebody sits before one, and is help everywhere else."""

import pytest

from pollex.cli.main import SCREEN_VARIABLES, can_open_browser


class Terminal:
    """A stream of a terminal, as far as anybody asks."""

    def isatty(self) -> bool:
        return True


def sit_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sit at a terminal of Linux without a screen; in the test itself, as pytest captures anew for it."""
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("webbrowser._tryorder", ["true %s"])
    for name in (*SCREEN_VARIABLES, "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)


def test_it_opens_where_there_is_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    sit_down(monkeypatch)
    assert not can_open_browser(), "no screen"
    monkeypatch.setenv("DISPLAY", ":0")
    assert can_open_browser()
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")
    assert not can_open_browser(), "the screen is elsewhere"


def test_it_opens_nothing_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    assert not can_open_browser()
