"""Long work says how far it is, also where there is no terminal for bars."""

import time
from io import StringIO

import pytest
from rich.console import Console

from pollex.cli import session
from pollex.cli.session import ProgressBars


def written_lines(seconds: float, silent: float, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines of a stage that says nothing for so many seconds after its second step."""
    monkeypatch.setattr(session, "SECONDS_BETWEEN_PROGRESS_LINES", seconds)
    written = StringIO()
    with ProgressBars(Console(file=written)) as bars:
        bars.start("extract", 3)
        bars.advance("extract", 2)
        time.sleep(silent)
    return [line for line in written.getvalue().splitlines() if line]


def test_a_line_a_minute_says_how_far_a_stage_is_also_while_it_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = written_lines(0.02, 0.3, monkeypatch)
    assert len(lines) > 1
    # a slow machine prints one before the second step, too
    assert set(lines) <= {f"Extracting reasons: {n} of 3 after 0 min" for n in (0, 2)}
    assert lines[-1] == "Extracting reasons: 2 of 3 after 0 min"


def test_quick_work_prints_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not written_lines(60.0, 0.0, monkeypatch)
