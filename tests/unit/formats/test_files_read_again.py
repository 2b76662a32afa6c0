"""A log that several ways of reading are tried on: archives and databases are opened once."""

import json
import sqlite3
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pollex.errors import BadInput
from pollex.formats import read_logs as reading

TALKS = [
    [("kunde", f"Wo ist mein Paket Nummer {n}?"), ("bot", f"Paket {n} kommt am Freitag an.")] * 2
    for n in range(8)
]
TURNS = [
    {"dlg": f"d{n}", "wer": who, "was": text} for n, talk in enumerate(TALKS) for who, text in talk
]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often each file was opened."""
    times = Counter[str]()
    rows_of = reading.iterate_file_rows

    def counted(source: str, *arguments: Any) -> Iterator[Any]:
        times[Path(source).suffix] += 1
        return rows_of(source, *arguments)

    monkeypatch.setattr(reading, "iterate_file_rows", counted)
    return times


def test_a_database_of_unknown_tables_is_read_once(tmp_path: Path, opened: Counter[str]) -> None:
    with sqlite3.connect(tmp_path / "log.db") as database:
        database.execute("CREATE TABLE msgs (dlg, wer, was)")
        database.executemany("INSERT INTO msgs VALUES (:dlg, :wer, :was)", TURNS)
        database.execute("CREATE TABLE votes (dlg, urteil)")
        votes = [(f"d{n}", ("gut", "schlecht")[n % 2]) for n in range(8)]
        database.executemany("INSERT INTO votes VALUES (?, ?)", votes)
    with pytest.raises(BadInput, match="begins so"):
        reading.read_logs(tmp_path / "log.db")
    assert opened == {".db": 1}


def test_an_archive_of_an_unknown_log_is_unpacked_once(
    tmp_path: Path, opened: Counter[str]
) -> None:
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as archive:
        archive.writestr("log.jsonl", "\n".join(map(json.dumps, TURNS)))
    with pytest.raises(BadInput, match="begins so"):
        reading.read_logs(tmp_path / "log.zip")
    assert opened == {".zip": 1}
