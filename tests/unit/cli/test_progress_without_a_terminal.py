"""Long work says how far it is, also where there is no terminal for bars."""

from io import StringIO

import pytest
from rich.console import Console

from pollex.cli import session
from pollex.cli.session import ProgressBars


def lines_of(seconds: float, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(session, "SECONDS_BETWEEN_LINES", seconds)
    written = StringIO()
    with ProgressBars(Console(file=written)) as bars:
        bars.start("extract", 3)
        for _ in range(3):
            bars.advance("extract")
    return written.getvalue().splitlines()


def test_a_line_a_minute_says_how_far_a_stage_is(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for line in lines_of(0.0, monkeypatch) if line]
    assert lines[-1] == "Extracting reasons: 3 of 3 after 0 min"


def test_quick_work_prints_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [line for line in lines_of(60.0, monkeypatch) if line]
