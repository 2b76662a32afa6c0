"""What asks for a yes is refused where nobody can give one."""

import io
from pathlib import Path

import click
import pytest

from pollex.cli.generator import confirm
from pollex.errors import WrongUse
from pollex.rooms.exchange.usecases.push import PushScores


@pytest.mark.parametrize("stdin", [None, io.StringIO("")], ids=["closed", "empty"])
def test_without_a_line_of_input_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, stdin: io.StringIO | None
) -> None:
    monkeypatch.setattr("sys.stdin", stdin)
    with pytest.raises(WrongUse, match=r"nobody is there to say yes → .*yes"):
        confirm("Send it?")


def test_a_line_of_input_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\nn\n"))
    confirm("Send it?")
    with pytest.raises(click.Abort):
        confirm("Send it?")


@pytest.mark.parametrize("tool", ["langfuse", "langsmith", "otel"])
def test_sending_asks_for_a_yes_unless_it_was_given(tool: str) -> None:
    assert PushScores(Path("scores.json"), to=tool).to_confirm
    assert not PushScores(Path("scores.json"), to=tool, yes=True).to_confirm
