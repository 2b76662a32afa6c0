"""Files as they come: broken, ragged, in a foreign encoding, crafted."""

import glob
import gzip
import io
import json
import os
import sqlite3
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
import zstandard

from pollex.conversations.logs import BadRow, Logs
from pollex.errors import BadInput, NotText, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.files import iterate_file_rows
from pollex.formats.json_rows import LogRow
from pollex.formats.queries import iterate_parquet_rows
from pollex.formats.read_logs import read_logs
from pollex.formats.write import open_row_file, write_rows
from pollex.text import MAX_JSON_DEPTH, parse_json

GOOD = '{"id": "a", "messages": [{"role": "user", "content": "x"}]}'
TABLE = "conversation_id,turn,role,text\n"


def rows(
    folder: Path, name: str, content: str | bytes, encoding: str = "utf-8-sig"
) -> list[LogRow | BadRow]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return list(iterate_file_rows(str(path), encoding))


def logs_from(folder: Path, name: str, content: str | bytes, **options: Any) -> Logs:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return read_logs(path, options=ReadOptions(**options))


def sqlite() -> bytes:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE checkpoints (id TEXT)")
        return database.serialize()


EMPTY = ["", "\n \n", "[]", '{"data": []}', "id,messages\n"]
STRAY = ['a "quoted" word,1', '"a"b,1', ' "a",1', '"a" ,1']
NO_PARQUET = [b"", b"PAR1", b"PAR1" + b"\x00" * 200 + b"PAR1", b"not parquet"]


REFUSED: list[tuple[str, str | bytes, dict[str, Any], str]] = [
    *[
        (f"log{ending}", text, {"max_bad": 99}, r"log.*")
        for ending in (".jsonl", ".json", ".csv", "")
        for text in EMPTY
    ],
    ("log.json", f"[{GOOD},\n oops]", {}, "not JSON: Expecting value at line 2 column 2"),
    *[("log.csv", f"text,n\nx,1\n{row}\n", {}, r"log.csv:3: a stray quote") for row in STRAY],
    ("log.csv", 'text,n\n"x,1\ny,2\nz,3\n', {}, r"log.csv:2: a quote is never closed"),
    ("log.csv", "id,,text\n1,2,3\n", {}, "the header has an empty name"),
    ("log.jsonl", GOOD.encode("utf-16")[:-1], {"encoding": "utf-16"}, "log.jsonl"),
    (
        "log.jsonl",
        GOOD,
        {"encoding": "utf-16"},
        r"not utf-16 text: .*utf-8, cp1252 .*: encoding='utf-8'",
    ),
    ("log.jsonl", GOOD, {"encoding": "klingon"}, "no encoding"),
    (
        "log.zip",
        b"PK\x03\x04\x14\x00",
        {},
        r"log.zip: can't be unpacked: .* → pack or copy the file again",
    ),
    ("log.gz", gzip.compress(GOOD.encode())[:-12], {}, "log.gz: can't be unpacked"),
    ("log.zst", zstandard.compress(GOOD.encode())[:-12], {}, "log.zst: can't be unpacked"),
    ("chat.db", sqlite(), {}, "a SQLite database → export the threads of LangGraph as JSON"),
    *[
        ("log.parquet", content, {}, r"log.parquet: can't be read as Parquet(?!.*SELECT)")
        for content in NO_PARQUET
    ],
]


@pytest.mark.parametrize(
    ("name", "content", "options", "says"), REFUSED, ids=[row[0] for row in REFUSED]
)
def test_a_file_that_can_not_be_read_is_refused_with_its_name_and_what_is_wrong(
    tmp_path: Path, name: str, content: str | bytes, options: dict[str, Any], says: str
) -> None:
    with pytest.raises((BadInput, WrongUse), match=says):
        logs_from(tmp_path, name, content, **options)


def test_a_missing_file_a_folder_and_an_empty_glob_are_errors(tmp_path: Path) -> None:
    for path, says in (
        (tmp_path / "none.jsonl", "no such file"),
        (tmp_path, "a folder"),
        (tmp_path / "*.a", "no such"),
    ):
        with pytest.raises(BadInput, match=says):
            read_logs(str(path))
    with pytest.raises(WrongUse, match="no logs"):
        read_logs([])


def test_globs_are_read_in_the_order_of_names_and_no_file_twice(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.jsonl").write_text(GOOD.replace('"a"', f'"{name}"'), encoding="utf-8")
    logs = read_logs([str(tmp_path / "*.jsonl"), tmp_path / "a.jsonl"])
    assert [c.id for c in logs] == ["a", "b"]
    assert logs.duplicates == 0


@pytest.mark.parametrize("content", [GOOD, f"[{GOOD}]", TABLE + "a,1,user,x\n"])
def test_the_format_of_standard_input_is_told_by_its_content(
    content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    logs = read_logs("-")
    assert [(c.id, c.turns[0].content) for c in logs] == [("a", "x")]


def test_bad_lines_are_kept_with_line_and_reason_and_the_rest_is_read(tmp_path: Path) -> None:
    twice = '{"messages": [{"role": "user", "role": "system"}]}'
    long = '{"id": ' + "9" * 5_000 + "}"
    content = f'{GOOD}\n\n{{"id": "b", "mess\n[1]\n{GOOD.replace("a", "c", 1)}\n{twice}\n{long}'
    found = rows(tmp_path, "log.jsonl", content)
    assert [row.line for row in found if isinstance(row, LogRow)] == [1, 5]
    bad = [(row.line, row.reason) for row in found if isinstance(row, BadRow)]
    assert [line for line, _ in bad] == [3, 4, 6, 7]
    assert "Unterminated string at column 13" in bad[0][1]
    assert "stands twice" in bad[2][1]


def test_too_deep_nesting_is_refused_and_wide_rows_are_read() -> None:
    for depth in (MAX_JSON_DEPTH + 1, 200_000):
        for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
            with pytest.raises(ValueError, match="nested deeper than 64"):
                parse_json(text)
    assert parse_json("[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH)
    assert len(parse_json("[" + "{}," * 500 + "{}]")) == 501


def test_lists_envelopes_single_objects_and_lines_are_read(tmp_path: Path) -> None:
    for wrap in ("[%s]", '{"data": [%s]}', '{"runs":\n [%s]}', "%s", "\n%s\n", f"%s\n{GOOD}\n"):
        row = rows(tmp_path, "log.json", wrap % GOOD)[-1]
        assert isinstance(row, LogRow), wrap
        assert row.fields["id"] == "a"


def test_a_ragged_row_is_bad_and_says_how(tmp_path: Path) -> None:
    found = rows(tmp_path, "log.csv", "id,text,label\na,x,1\nb,y\nc,z,1,2\nd,w,0\n")
    assert [
        str(row).rpartition("log.csv:")[2].split(" →")[0]
        for row in found
        if isinstance(row, BadRow)
    ] == [
        "3: 2 cells where the header has 3",
        "4: 4 cells where the header has 3",
    ]
    assert [row.fields["id"] for row in found if isinstance(row, LogRow)] == ["a", "d"]


def test_cells_are_text_and_two_columns_of_one_name_are_one_where_they_are_equal(
    tmp_path: Path,
) -> None:
    index = ",id,text\n0,a,Hello\n"  # of a data frame
    odd = "id,b,c,d\r\n2024-01-01,007,1.0,NA\r\n"
    twice = "id,text,id\na,Hello,a\nb,Hello,c\n"
    found = [row for text in (index, odd, twice) for row in rows(tmp_path, "log.csv", text)]
    assert [row.fields for row in found if isinstance(row, LogRow)] == [
        {"id": "a", "text": "Hello"},
        {"id": "2024-01-01", "b": "007", "c": "1.0", "d": "NA"},
        {"id": "a", "text": "Hello"},
    ]
    assert [
        "two columns named 'id' differ" in row.reason for row in found if isinstance(row, BadRow)
    ] == [True]


def test_quotes_delimiters_and_line_ends_in_quoted_cells_are_kept(tmp_path: Path) -> None:
    found = rows(tmp_path, "log.csv", 'id,text\n1,"say ""hi"",\r\nbye"\n\n2,""\n3,\n')
    assert [(row.line, row.fields["text"]) for row in found if isinstance(row, LogRow)] == [
        (2, 'say "hi",\r\nbye'),
        (5, ""),
        (6, ""),
    ]


GERMAN = "Ich möchte die Übung für morgen ändern, größere Räume wären schön."


def test_another_encoding_than_utf_8_is_told_by_its_letters_and_noted(tmp_path: Path) -> None:
    table = f'{TABLE}a,1,user,"{GERMAN}"\na,2,bot,Über welche Räume sprechen wir?\n'
    for encoding in ("cp1252", "utf-16-le", "utf-16-be", "utf-16"):
        logs = logs_from(tmp_path, "log.csv", table.encode(encoding))
        assert logs.conversations[0].turns[0].content == GERMAN, encoding
        assert any("isn't UTF-8, and was read as" in note for note in logs.notes)
    russian = "Здравствуйте, когда придёт мой заказ номер семнадцать?"
    content = f"{TABLE}a,1,user,{russian}\na,2,bot,Заказ придёт в пятницу утром\n"
    logs = logs_from(
        tmp_path,
        "log.csv",
        content.replace(f"user,{russian}", f'user,"{russian}"').encode("cp1251"),
    )
    assert logs.conversations[0].turns[0].content == russian
    assert not [
        note
        for note in logs_from(tmp_path, "log.csv", content.encode(), max_bad=9).notes
        if "UTF-8" in note
    ]


GERMAN_CELLS = (
    "Wie kann ich den Gutschein für die Küche einlösen?",
    "Der Gutschein lässt sich unter Zahlungsmöglichkeiten eingeben.",
    "Mein Paket hängt in Köln, was kann ich tun?",
    "Ich prüfe das gern; die Lieferung kommt voraussichtlich schon übermorgen.",
)


@pytest.mark.parametrize("encoding", ["cp1252", "cp850", "mac_roman"])
def test_letters_stand_within_words_in_the_right_encoding(tmp_path: Path, encoding: str) -> None:
    table = TABLE
    for n in range(3):
        for place, role in enumerate(("user", "bot")):
            table += f'{n},{place},{role},"{GERMAN_CELLS[n % 2 * 2 + place]}"\n'
    logs = logs_from(tmp_path, "log.csv", table.encode(encoding))
    said = {turn.content for conversation in logs for turn in conversation.turns}
    assert said == {*GERMAN_CELLS}


def test_a_damaged_letter_of_utf_8_is_named_with_its_line(tmp_path: Path) -> None:
    content = (TABLE + "a,1,user,für\na,2,bot,größer\na,3,user,").encode() + "café\n".encode(
        "latin-1"
    )
    with pytest.raises(NotText, match=r"log.csv:4: not UTF-8 text: byte 0xe9 → .*: encoding='"):
        logs_from(tmp_path, "log.csv", content)
    logs = logs_from(tmp_path, "log.csv", content, encoding="latin-1")
    assert logs.conversations[0].turns[2].content == "café"


def test_a_mark_of_byte_order_tells_the_encoding(tmp_path: Path) -> None:
    for name, content in (
        ("log.jsonl", f"{GOOD}\n"),
        ("log.csv", TABLE + "a,1,user,x\n"),
        ("log.json", f"[{GOOD}]"),
    ):
        for order in ("utf-16-le", "utf-16-be"):
            assert len(logs_from(tmp_path, name, ("\ufeff" + content).encode(order))) == 1
    for encoding, order in (
        ("utf-16", "utf-16-le"),
        ("utf-16", "utf-16-be"),
        ("utf-8-sig", "utf-8"),
    ):
        assert logs_from(tmp_path, "log.jsonl", f"\ufeff{GOOD}\n".encode(order), encoding=encoding)


def test_packed_files_archives_and_folders_give_all_their_rows(tmp_path: Path) -> None:
    for pack in (gzip.compress, zstandard.compress):
        for name in ("log.jsonl.gz", "log"):
            assert len(logs_from(tmp_path, name, pack(GOOD.encode()))) == 1
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr("one.jsonl", GOOD)
        archive.writestr("read.me", "nothing")
    assert len(read_logs(tmp_path / "logs.zip")) == 1
    with zipfile.ZipFile(tmp_path / "table.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
    with pytest.raises(BadInput, match=r"can't be opened: .* → save it again, or as CSV"):
        read_logs(tmp_path / "table.xlsx")
    (tmp_path / "logs" / "more").mkdir(parents=True)
    (tmp_path / "logs" / "a.jsonl").write_text(GOOD)
    (tmp_path / "logs" / "more" / ".b.jsonl").write_text("broken")
    assert len(read_logs(tmp_path / "logs")) == 1
    with pytest.raises(BadInput, match="a folder without logs"):
        read_logs(tmp_path / "logs" / "more")


def parquet(folder: Path, select: str, name: str = "log.parquet") -> Path:
    path = folder / name
    duckdb.connect().execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")
    return path


def test_parquet_values_keep_their_types_or_become_text(tmp_path: Path) -> None:
    select = """SELECT DATE '2024-01-01' AS id, [{'role': 'user', 'content': 'x'}] AS messages, 1 AS thumbs, 7 AS row_0,
        1.50::DECIMAL(4, 2) AS price, NULL AS nothing, TIMESTAMPTZ '2024-01-01 00:00:00+00' AS time"""
    (row,) = iterate_parquet_rows("log", parquet(tmp_path, select))
    assert isinstance(row, LogRow)
    assert row.fields["id"] == "2024-01-01"
    assert row.fields["messages"] == [{"role": "user", "content": "x"}]
    assert (
        row.fields["thumbs"],
        row.fields["row_0"],
        row.fields["price"],
        row.fields["nothing"],
    ) == (1, 7, 1.5, None)


def test_a_parquet_path_is_never_a_pattern_and_its_folders_no_columns(tmp_path: Path) -> None:
    folder = tmp_path / "day=1"
    folder.mkdir()
    path = parquet(folder, "SELECT 'a' AS id", "log[1]*.parquet")
    parquet(folder, "SELECT 'b' AS id", "log1.parquet")
    assert [row.fields for row in iterate_parquet_rows("log", path) if isinstance(row, LogRow)] == [
        {"id": "a"}
    ]


def test_a_parquet_file_that_is_nested_too_deeply_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "deep.parquet"
    # DuckDB can't read the first, and takes a year for the second
    for levels, refusal in ((200, "nested too deeply|lists within lists"), (60, "deep has lists")):
        deep = "[" * levels + "1" + "]" * levels
        duckdb.sql(f"COPY (SELECT 'a' AS id, {deep} AS deep) TO '{path}' (FORMAT parquet)")
        with pytest.raises(BadInput, match=refusal):
            read_logs([str(path)])


def test_lists_of_any_kind_count_within_each_other_and_not_side_by_side(tmp_path: Path) -> None:
    deep = "1"
    wide = ", ".join(f"'f{number}': [{number}]" for number in range(20))
    for _ in range(10):
        deep = f"[MAP {{'a': {{'b': {deep}}}}}]"
    path = parquet(tmp_path, f"SELECT 'a' AS id, {deep} AS deep", "deep.parquet")
    with pytest.raises(BadInput, match="deep has lists within lists, 20 deep"):
        list(iterate_parquet_rows("log", path))
    path = parquet(tmp_path, f"SELECT 'a' AS id, {{{wide}}} AS wide", "wide.parquet")
    (row,) = iterate_parquet_rows("log", path)
    assert isinstance(row, LogRow)
    assert row.fields["wide"]["f19"] == [19]


def test_json_lines_csv_and_parquet_of_the_same_log_are_the_same_conversations(
    tmp_path: Path,
) -> None:
    messages = [
        {"role": "user", "content": 'a "b", c\n'},
        {"role": "assistant", "content": "Ünï 👍"},
    ]
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
    found = (
        duckdb.connect()
        .execute("SELECT id FROM read_parquet(?)", [str(tmp_path / "a.parquet")])
        .fetchall()
    )
    assert found == [("a?",), ("é",)]


def test_a_long_parquet_file_is_written_in_the_memory_of_a_short_one(tmp_path: Path) -> None:
    def in_use() -> float:
        pages = Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6

    if sys.platform != "linux":
        pytest.skip("the system doesn't tell what is in use")
    used = []
    with open_row_file(tmp_path / "a.parquet", {"id": "VARCHAR", "text": "VARCHAR"}) as put:
        for batch in range(36):
            put([{"id": f"{batch}-{row}", "text": f"{row / 7} " * 40} for row in range(1100)])
            used.append(in_use())
    assert used[-1] - used[3] < 12  # MB
    ids = (
        duckdb.connect()
        .execute("SELECT id FROM read_parquet(?)", [str(tmp_path / "a.parquet")])
        .fetchall()
    )
    assert ids == [(f"{batch}-{row}",) for batch in range(36) for row in range(1100)]
