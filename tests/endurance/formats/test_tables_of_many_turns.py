"""A table of a million turns is read within a gigabyte."""

import subprocess
import sys
from pathlib import Path

import pytest

MEASURED = """
import resource, sys
from pollex.formats.read_logs import read_logs
logs = read_logs(sys.argv[1])
print(len(logs.conversations), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_a_million_turns_are_read_in_less_than_a_gigabyte(tmp_path: Path) -> None:
    path = tmp_path / "turns.csv"
    with path.open("w") as file:
        file.write("conversation_id,turn,role,text,thumbs,user_id\n")
        for row in range(1_000_000):
            conversation, turn = divmod(row, 10)
            who = ("user", "assistant")[turn % 2]
            thumb = ("up", "down")[conversation % 2]
            file.write(
                f"c{conversation},{turn},{who},{f'word{row} ' * 8},{thumb},u{conversation % 500}\n"
            )
    measured = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True
    )
    conversations, kilobytes = map(int, measured.stdout.split())
    assert conversations == 100_000
    assert kilobytes < 1_000_000
