"""Spreadsheets, Excel's own line in a CSV file, and files that an export has beside its conversations."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from pollex.errors import BadInput
from pollex.formats.read_logs import read_logs

SHEET = Path(__file__).parent / "sheets" / "log.xlsx"
TALK = {
    "id": "a",
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
}


@pytest.mark.parametrize("name", ["log.xlsx", "log.csv", "log"])
def test_a_spreadsheet_is_read_whatever_it_is_called(name: str, tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    shutil.copy(SHEET, tmp_path / name)
    logs = read_logs(tmp_path / name)
    assert [len(talk.turns) for talk in logs] == [4] * 6
    assert {talk.label.value for talk in logs} == {"positive", "negative"}


def test_a_spreadsheet_with_a_cell_far_away_is_refused_and_not_made_room_for(
    tmp_path: Path,
) -> None:
    pytest.importorskip("python_calamine")
    with (
        zipfile.ZipFile(SHEET) as whole,
        zipfile.ZipFile(tmp_path / "log.xlsx", "w") as spoilt,
    ):
        for name in whole.namelist():
            content = whole.read(name)
            if name.startswith("xl/worksheets/"):
                far = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
                assert b"</sheetData>" in content
                content = content.replace(b"</sheetData>", far)
            spoilt.writestr(name, content)
    with pytest.raises(BadInput, match="can't be opened: it takes more than 1 GB of memory"):
        read_logs(tmp_path / "log.xlsx")


def test_excels_line_with_the_separator_is_no_header(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "sep=;\nconversation_id;role;content\na;user;Hi, there\na;bot;Hello\n"
    )
    assert [turn.content for turn in read_logs(tmp_path / "log.csv").conversations[0].turns] == [
        "Hi, there",
        "Hello",
    ]


def test_known_companions_of_conversations_are_left_out(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps([TALK]))
        archive.writestr("user.json", json.dumps({"id": "u", "email": "x@example.org"}))
        archive.writestr("user_settings.json", "{}")
    assert len(read_logs(tmp_path / "export.zip")) == 1
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "conversations.json").write_text(json.dumps([TALK]))
    (tmp_path / "folder" / "user.json").write_text(
        json.dumps({"id": "u", "email": "x@example.org"})
    )
    assert len(read_logs(tmp_path / "folder")) == 1
    assert len(read_logs(str(tmp_path / "folder" / "*.json"))) == 1


def test_a_file_that_is_called_like_a_companion_and_stands_alone_is_read(tmp_path: Path) -> None:
    (tmp_path / "users.json").write_text(json.dumps([TALK]))
    assert len(read_logs(tmp_path)) == 1
