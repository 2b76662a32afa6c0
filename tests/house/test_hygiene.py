"""Nothing of anybody's machine is in the repository."""

import re
import subprocess
from pathlib import Path

from rooms import ROOT

HOMES = re.compile(r"(?<![\w./])/(home|Users)/\w+/")
KEYS = re.compile(
    r"\b(sk-[A-Za-z0-9]{32,}|lsv2_[a-z]+_[0-9a-f]{16,}|hf_[A-Za-z]{30,}|AKIA[0-9A-Z]{16})\b"
)


def tracked() -> list[Path]:
    """The files of the repository; in an unpacked archive, where git knows none, the documents at the top."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    found = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in found or ROOT.glob("*.*") if path.is_file()]


def hits(pattern: re.Pattern[str]) -> list[str]:
    """Where the pattern is found, sample conversations aside: their paths are somebody else's, made up."""
    return [
        f"{path.relative_to(ROOT)}:{number} {line.strip()[:80]}"
        for path in tracked()
        if path.suffix not in (".jsonl", ".png") and path != Path(__file__)
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_the_folder_that_it_was_written_in() -> None:
    assert hits(re.compile(re.escape(str(ROOT)) + r"\b")) == []


def test_no_file_names_a_home_folder() -> None:
    assert hits(HOMES) == []


def test_no_file_has_a_key_in_it() -> None:
    assert hits(KEYS) == []


def test_no_file_is_larger_than_a_megabyte() -> None:
    assert [path.name for path in tracked() if path.stat().st_size > 1_000_000] == []
