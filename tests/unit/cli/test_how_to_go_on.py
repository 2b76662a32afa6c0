"""What a command that was interrupted says to go on with."""

import pytest

from pollex.cli.main import exit_with_error
from pollex.errors import Interrupted
from pollex.outputs import listen_for_outputs, note_run


@pytest.mark.parametrize(
    ("has_run", "more", "command"),
    [
        (True, "", "pollex learn log.jsonl --out r.json --resume"),
        (False, "", "pollex learn log.jsonl --out r.json"),
        (False, " --resume", "pollex learn log.jsonl --out r.json --resume"),
    ],
)
def test_a_run_is_gone_on_with_once_there_is_one(
    has_run: bool,
    more: str,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", f"pollex learn log.jsonl --out r.json{more}".split())
    with pytest.raises(SystemExit):
        exit_with_error(Interrupted("interrupted"), has_run=has_run)
    assert capsys.readouterr().err.splitlines()[-1] == f"Go on with: {command}"


def test_whoever_listens_outside_hears_of_a_run_that_began_inside() -> None:
    with listen_for_outputs() as outer:
        with listen_for_outputs():
            note_run("learn-1-abcd")
        assert outer.run == "learn-1-abcd"
