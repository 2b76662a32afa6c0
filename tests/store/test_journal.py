"""The journal alone: lines, checksums, and what is left of a file that was hurt."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollex.errors import StoreDamaged
from pollex.store.journal import START, Entry, Journal, Mark, Place
from pollex.store.tables import LedgerRow, packed

ENTRIES = [Entry("ledger", f'{{"key":"k{number}","kind":"result"}}') for number in range(4)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of four lines."""
    journal = Journal(tmp_path / "journal.jsonl", writable=True)
    journal.append(ENTRIES)
    journal.close()
    return journal.path


def survey(path: Path, mark: Mark = START):
    found: list[Entry] = []
    journal = Journal(path, writable=False)
    result = journal.survey(mark, lambda entry, place: found.append(entry))
    journal.close()
    return result, found


def test_an_unfinished_last_line_is_told_and_the_rest_is_read(path: Path) -> None:
    whole = path.read_bytes()
    for cut in range(1, len(ENTRIES[3].line)):
        path.write_bytes(whole[:-cut])
        result, found = survey(path)
        assert (result.partial, found) == (len(ENTRIES[3].line) - cut, ENTRIES[:3])


def test_every_flipped_bit_costs_at_most_the_lines_it_touches(path: Path) -> None:
    whole = path.read_bytes()
    lengths = [len(entry.line) for entry in ENTRIES]
    for offset in range(lengths[0], lengths[0] + lengths[1] - 1):
        for bit in range(8):
            hurt = bytearray(whole)
            hurt[offset] ^= 1 << bit
            path.write_bytes(hurt)
            result, found = survey(path)
            assert result.damaged >= 1
            assert found == [ENTRIES[0], *ENTRIES[2:]]


def test_a_line_is_json_with_its_checksum() -> None:
    line = LedgerRow("k", "result", 1, "t", packed({"raw": "é\n\ud800"})).entry.line
    body = line[line.index(b'"table"') : -2]
    content = json.loads(line)
    assert int(content["crc"], 16) == zlib.crc32(body)
    assert json.loads(content["row"]["payload"]) == {"raw": "é\n\ud800"}
    assert line.count(b"\n") == 1


def test_a_mark_is_known_only_in_the_journal_that_it_was_taken_from(path: Path) -> None:
    result, _ = survey(path)
    after_two = START.after(ENTRIES[0].line).after(ENTRIES[1].line)
    assert result.end == Mark(path.stat().st_size, zlib.crc32(path.read_bytes()))
    assert survey(path, result.end)[0].known
    assert survey(path, after_two)[0].known
    assert survey(path, after_two)[0].counts["ledger"] == 2
    assert not survey(path, Mark(after_two.offset, after_two.crc ^ 1))[0].known
    assert not survey(path, Mark(result.end.offset + 1, 0))[0].known
    assert survey(path, START)[0].known


def test_a_place_leads_back_to_its_entry_until_the_file_is_changed(path: Path) -> None:
    journal = Journal(path, writable=True)
    places: list[Place] = []
    journal.survey(START, lambda entry, place: places.append(place))
    places += journal.append([Entry("ledger", "{}")])
    assert [journal.read(place) for place in places] == [*ENTRIES, Entry("ledger", "{}")]
    with path.open("r+b") as file:
        file.seek(places[2].offset + 30)
        file.write(b"#")
    with pytest.raises(StoreDamaged, match="changed at byte"):
        journal.read(places[2])
    journal.close()


@given(st.lists(st.tuples(st.text(max_size=20), st.text(st.characters(), max_size=200)), max_size=5))
def test_whatever_was_kept_comes_back(tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[str, str]]) -> None:
    journal = Journal(tmp_path_factory.mktemp("any") / "journal.jsonl", writable=True)
    entries = [LedgerRow("k", "result", 1, "t", packed(call)).entry for call in calls]
    journal.append(entries)
    assert [entry for entry, _ in journal.entries()] == entries
    assert [tuple(json.loads(json.loads(entry.row)["payload"])) for entry in entries] == calls
    journal.close()
