"""Files as they come: broken, ragged, in a foreign encoding, crafted."""

import glob
import gzip
import io
import json
import os
import sqlite3
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
import zstandard

from pollex.conversations.logs import BadRow, Logs
from pollex.errors import BadInput, NotText, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.files import rows_of
from pollex.formats.json_rows import LogRow
from pollex.formats.queries import parquet_rows
from pollex.formats.read_logs import read_logs
from pollex.formats.write import rows_out, write_rows
from pollex.text import MAX_DEPTH, parse_json

GOOD = '{"id": "a", "messages": [{"role": "user", "content": "x"}]}'
TABLE = "conversation_id,turn,role,text\n"


def rows(folder: Path, name: str, content: str | bytes, encoding: str = "utf-8-sig") -> list[LogRow | BadRow]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return list(rows_of(str(path), encoding))


def logs_from(folder: Path, name: str, content: str | bytes, **options: Any) -> Logs:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return read_logs(path, options=ReadOptions(**options))


# Files and globs


def test_a_missing_file_a_folder_and_an_empty_glob_are_errors(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        read_logs(tmp_path / "none.jsonl")
    with pytest.raises(BadInput, match="a folder"):
        read_logs(tmp_path)
    with pytest.raises(BadInput, match="no such file"):
        read_logs(str(tmp_path / "*.jsonl"))
    with pytest.raises(WrongUse, match="no logs"):
        read_logs([])


@pytest.mark.parametrize("content", ["", "\n \n", "[]", '{"data": []}', "id,messages\n"])
@pytest.mark.parametrize("name", ["log.jsonl", "log.json", "log.csv", "log"])
def test_a_file_without_conversations_is_an_error(tmp_path: Path, name: str, content: str) -> None:
    with pytest.raises(BadInput):
        logs_from(tmp_path, name, content, max_bad=99)


def test_globs_are_read_in_the_order_of_names_and_no_file_twice(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.jsonl").write_text(GOOD.replace('"a"', f'"{name}"'), encoding="utf-8")
    logs = read_logs([str(tmp_path / "*.jsonl"), tmp_path / "a.jsonl"])
    assert [c.id for c in logs] == ["a", "b"]
    assert logs.duplicates == 0


@pytest.mark.parametrize("content", [GOOD, f"[{GOOD}]", TABLE + "a,1,user,x\n"])
def test_the_format_of_standard_input_is_told_by_its_content(content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    logs = read_logs("-")
    assert [(c.id, c.turns[0].content) for c in logs] == [("a", "x")]


# JSON lines


def test_bad_lines_are_kept_with_line_and_reason_and_the_rest_is_read(tmp_path: Path) -> None:
    content = f'{GOOD}\n\n{{"id": "b", "mess\n[1]\n{GOOD.replace("a", "c", 1)}'
    found = rows(tmp_path, "log.jsonl", content)
    assert [(row.line, isinstance(row, BadRow)) for row in found] == [(1, False), (3, True), (4, True), (5, False)]
    assert isinstance(found[1], BadRow)
    assert "Unterminated string at column 13" in found[1].reason


def test_equal_keys_are_refused_at_any_depth(tmp_path: Path) -> None:
    for line in ('{"id": 1, "id": 2}', '{"messages": [{"role": "user", "role": "system"}]}'):
        (bad,) = rows(tmp_path, "log.jsonl", line)
        assert isinstance(bad, BadRow)
        assert "stands twice" in bad.reason


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 5_000, 200_000])
def test_too_deep_nesting_is_refused(depth: int) -> None:
    with pytest.raises(ValueError, match="nested deeper than 64"):
        parse_json("[" * depth + "]" * depth)
    with pytest.raises(ValueError, match="nested deeper than 64"):
        parse_json('{"a":' * depth + "1" + "}" * depth)


def test_the_allowed_depth_and_wide_rows_are_read() -> None:
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert len(parse_json("[" + "{}," * 500 + "{}]")) == 501


def test_a_number_too_long_for_python_is_a_bad_line(tmp_path: Path) -> None:
    (bad,) = rows(tmp_path, "log.jsonl", '{"id": ' + "9" * 5_000 + "}")
    assert isinstance(bad, BadRow)


# JSON documents


def test_a_broken_json_document_is_refused_as_a_whole(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not JSON: Expecting value at line 2 column 2"):
        rows(tmp_path, "log.json", f"[{GOOD},\n oops]")


@pytest.mark.parametrize("wrap", ["[%s]", '{"data": [%s]}', '{"runs":\n [%s]}', "%s", "\n%s\n"])
def test_lists_envelopes_and_single_objects_are_read(tmp_path: Path, wrap: str) -> None:
    (row,) = rows(tmp_path, "log.json", wrap % GOOD)
    assert isinstance(row, LogRow)
    assert row.fields["id"] == "a"


def test_json_lines_in_a_json_file_are_lines(tmp_path: Path) -> None:
    assert len(rows(tmp_path, "log.json", f"{GOOD}\n{GOOD}\n")) == 2


# CSV


def test_a_ragged_row_is_bad_and_says_how(tmp_path: Path) -> None:
    found = rows(tmp_path, "log.csv", "id,text,label\na,x,1\nb,y\nc,z,1,2\nd,w,0\n")
    assert [str(row).rpartition("log.csv:")[2].split(" →")[0] for row in found if isinstance(row, BadRow)] == [
        "3: 2 cells where the header has 3",
        "4: 4 cells where the header has 3",
    ]
    assert [row.fields["id"] for row in found if isinstance(row, LogRow)] == ["a", "d"]


@pytest.mark.parametrize("record", ['a "quoted" word,1', '"a"b,1', ' "a",1', '"a" ,1'])
def test_a_stray_quote_refuses_the_file_with_its_line(tmp_path: Path, record: str) -> None:
    with pytest.raises(BadInput, match=r"log.csv:3: a stray quote"):
        rows(tmp_path, "log.csv", f"text,n\nx,1\n{record}\n")


def test_a_quote_that_is_never_closed_is_named_by_the_line_that_opens_it(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"log.csv:2: a quote is never closed"):
        rows(tmp_path, "log.csv", 'text,n\n"x,1\ny,2\nz,3\n')


def test_an_empty_column_name_is_refused_but_for_the_index_of_a_data_frame(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="the header has an empty name"):
        rows(tmp_path, "log.csv", "id,,text\n1,2,3\n")
    (row,) = rows(tmp_path, "log.csv", ",id,text\n0,a,Hello\n")
    assert isinstance(row, LogRow)
    assert row.fields == {"id": "a", "text": "Hello"}


def test_two_columns_of_one_name_are_one_where_they_are_equal_and_else_a_bad_row(tmp_path: Path) -> None:
    equal, other = rows(tmp_path, "log.csv", "id,text,id\na,Hello,a\nb,Hello,c\n")
    assert isinstance(equal, LogRow)
    assert equal.fields == {"id": "a", "text": "Hello"}
    assert isinstance(other, BadRow)
    assert "two columns named 'id' differ" in other.reason


def test_cells_are_text_whatever_they_look_like(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, "log.csv", "id,b,c,d\r\n2024-01-01,007,1.0,NA\r\n")
    assert isinstance(row, LogRow)
    assert row.fields == {"id": "2024-01-01", "b": "007", "c": "1.0", "d": "NA"}


def test_quotes_delimiters_and_line_ends_in_quoted_cells_are_kept(tmp_path: Path) -> None:
    found = rows(tmp_path, "log.csv", 'id,text\n1,"say ""hi"",\r\nbye"\n\n2,""\n3,\n')
    assert [(row.line, row.fields["text"]) for row in found if isinstance(row, LogRow)] == [
        (2, 'say "hi",\r\nbye'),
        (5, ""),
        (6, ""),
    ]


# Encodings


def test_bytes_that_are_not_utf_8_are_named_with_their_line(tmp_path: Path) -> None:
    content = (TABLE + "a,1,user,x\na,2,bot,café\n").encode("latin-1")
    with pytest.raises(
        NotText, match=r"log.csv:3: not UTF-8 text: byte 0xe9 → .*cp1252 .* or latin-1: encoding='cp1252'"
    ):
        logs_from(tmp_path, "log.csv", content)
    logs = logs_from(tmp_path, "log.csv", content, encoding="latin-1")
    assert logs.conversations[0].turns[1].content == "café"


def test_a_mark_of_byte_order_names_the_encoding_and_is_never_advised_to_be_read_as_bytes(tmp_path: Path) -> None:
    for name, content in (("log.jsonl", f"{GOOD}\n"), ("log.csv", TABLE), ("log.json", f"[{GOOD}]")):
        for mark, order in (("\ufeff", "utf-16-le"), ("\ufeff", "utf-16-be")):
            with pytest.raises(NotText, match=r"not UTF-8 text: .*encoding='utf-16'$"):
                logs_from(tmp_path, name, (mark + content).encode(order))
            assert logs_from(tmp_path, "log.jsonl", (mark + f"{GOOD}\n").encode(order), encoding="utf-16")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_other_encodings_and_byte_order_marks_are_read(tmp_path: Path, encoding: str) -> None:
    assert len(logs_from(tmp_path, "log.jsonl", f"{GOOD}\n".encode(encoding), encoding=encoding)) == 1


def test_a_truncated_utf_16_file_and_an_unknown_encoding_are_errors(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        logs_from(tmp_path, "log.jsonl", GOOD.encode("utf-16")[:-1], encoding="utf-16")
    with pytest.raises(NotText, match=r"not utf-16 text: .*utf-8, cp1252 .*: encoding='utf-8'"):
        logs_from(tmp_path, "log.jsonl", GOOD, encoding="utf-16")
    with pytest.raises(WrongUse, match="no encoding"):
        logs_from(tmp_path, "log.jsonl", GOOD, encoding="klingon")


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_packed_file_is_unpacked(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    assert len(logs_from(tmp_path, "log.jsonl.gz", pack(GOOD.encode()))) == 1
    assert len(logs_from(tmp_path, "log", pack(GOOD.encode()))) == 1


def test_an_archive_gives_the_rows_of_all_its_tables_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr("one.jsonl", GOOD)
        archive.writestr("read.me", "nothing")
    assert len(read_logs(tmp_path / "logs.zip")) == 1
    with pytest.raises(BadInput, match=r"log.zip: can't be unpacked: .* → pack or copy the file again"):
        logs_from(tmp_path, "log.zip", b"PK\x03\x04\x14\x00")
    with zipfile.ZipFile(tmp_path / "table.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
    with pytest.raises(BadInput, match="a spreadsheet → save it as CSV"):
        read_logs(tmp_path / "table.xlsx")


def test_a_damaged_packed_file_is_named(tmp_path: Path) -> None:
    for name, pack in (("log.gz", gzip.compress), ("log.zst", zstandard.compress)):
        with pytest.raises(BadInput, match=f"{name}: can't be unpacked"):
            logs_from(tmp_path, name, pack(GOOD.encode())[:-12])


def test_a_folder_gives_all_its_files_but_the_hidden_ones(tmp_path: Path) -> None:
    (tmp_path / "logs" / "more").mkdir(parents=True)
    (tmp_path / "logs" / "a.jsonl").write_text(GOOD)
    (tmp_path / "logs" / "more" / ".b.jsonl").write_text("broken")
    assert len(read_logs(tmp_path / "logs")) == 1
    with pytest.raises(BadInput, match="a folder without logs"):
        read_logs(tmp_path / "logs" / "more")


def test_a_database_is_named_with_what_to_export_in_its_place(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "chat.db")) as database:
        database.execute("CREATE TABLE steps (id TEXT)")
    with pytest.raises(BadInput, match="a SQLite database → export Chainlit's tables as CSV"):
        read_logs(tmp_path / "chat.db")


# Parquet


def parquet(folder: Path, select: str, name: str = "log.parquet") -> Path:
    path = folder / name
    duckdb.connect().execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")
    return path


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\x00" * 200 + b"PAR1", b"not parquet"])
def test_a_broken_parquet_file_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BadInput, match=r"log.parquet: can't be read as Parquet") as refused:
        rows(tmp_path, "log.parquet", content)
    assert "SELECT" not in str(refused.value)


def test_parquet_values_keep_their_types_or_become_text(tmp_path: Path) -> None:
    select = """SELECT DATE '2024-01-01' AS id, [{'role': 'user', 'content': 'x'}] AS messages, 1 AS thumbs, 7 AS row_0,
        1.50::DECIMAL(4, 2) AS price, NULL AS nothing, TIMESTAMPTZ '2024-01-01 00:00:00+00' AS time"""
    (row,) = parquet_rows("log", parquet(tmp_path, select))
    assert isinstance(row, LogRow)
    assert row.fields["id"] == "2024-01-01"
    assert row.fields["messages"] == [{"role": "user", "content": "x"}]
    assert (row.fields["thumbs"], row.fields["row_0"], row.fields["price"], row.fields["nothing"]) == (1, 7, 1.5, None)


def test_a_parquet_path_is_never_a_pattern_and_its_folders_no_columns(tmp_path: Path) -> None:
    folder = tmp_path / "day=1"
    folder.mkdir()
    path = parquet(folder, "SELECT 'a' AS id", "log[1]*.parquet")
    parquet(folder, "SELECT 'b' AS id", "log1.parquet")
    assert [row.fields for row in parquet_rows("log", path) if isinstance(row, LogRow)] == [{"id": "a"}]


def test_leaving_a_parquet_file_half_read_ends_its_reader(tmp_path: Path) -> None:
    found = parquet_rows("log", parquet(tmp_path, "SELECT range AS id FROM range(200000)"))
    assert isinstance(next(found), LogRow)
    found.close()  # type: ignore[attr-defined]
    assert next(found, None) is None


def test_json_lines_csv_and_parquet_of_the_same_log_are_the_same_conversations(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": 'a "b", c\n'}, {"role": "assistant", "content": "Ünï 👍"}]
    line = json.dumps({"id": "1", "messages": messages, "thumbs": "up"})
    cell = json.dumps(messages).replace('"', '""')
    by_lines = logs_from(tmp_path, "log.jsonl", line)
    by_csv = logs_from(tmp_path, "log.csv", f'id,messages,thumbs\n1,"{cell}",up\n')
    path = tmp_path / "log.parquet"
    source = glob.escape(str(tmp_path / "log.jsonl"))
    duckdb.connect().execute(f"COPY (FROM read_json('{source}')) TO '{path}' (FORMAT parquet)")
    by_parquet = read_logs(path)
    assert by_lines.fingerprint == by_csv.fingerprint == by_parquet.fingerprint


def test_a_row_with_half_a_character_stands_in_a_parquet_file(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.parquet", [{"id": "a\ud800"}, {"id": "é"}], {"id": "VARCHAR"})
    found = duckdb.connect().execute("SELECT id FROM read_parquet(?)", [str(tmp_path / "a.parquet")]).fetchall()
    assert found == [("a?",), ("é",)]


def test_a_long_parquet_file_is_written_in_the_memory_of_a_short_one(tmp_path: Path) -> None:
    def in_use() -> float:
        pages = Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6

    if sys.platform != "linux":
        pytest.skip("the system doesn't tell what is in use")
    used = []
    with rows_out(tmp_path / "a.parquet", {"id": "VARCHAR", "text": "VARCHAR"}) as put:
        for batch in range(36):
            put([{"id": f"{batch}-{row}", "text": f"{row / 7} " * 40} for row in range(1100)])
            used.append(in_use())
    assert used[-1] - used[3] < 12  # MB
    ids = duckdb.connect().execute("SELECT id FROM read_parquet(?)", [str(tmp_path / "a.parquet")]).fetchall()
    assert ids == [(f"{batch}-{row}",) for batch in range(36) for row in range(1100)]


def test_a_plain_message_is_read_as_one_with_more_fields(tmp_path: Path) -> None:
    plain = [
        {"role": " Human ", "content": "a"},
        {"role": "gpt", "content": ""},
        {"role": "tool", "content": "data:x/y;base64,QUJD"},
    ]
    rich = [message | {"id": "1"} for message in plain]
    lines = "\n".join(json.dumps({"id": str(n), "messages": each}) for n, each in enumerate((plain, rich)))
    first, second = logs_from(tmp_path, "log.jsonl", lines)
    assert first.turns == second.turns
