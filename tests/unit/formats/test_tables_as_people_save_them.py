"""Tables as people save them: with a title, totals, cells that Python wrote, columns in place of rows."""

import json
from pathlib import Path

import pandas as pd

from pollex.formats.read_logs import read_logs

TURNS = [
    {"role": "user", "content": "It's late, isn't it?", "name": None},
    {"role": "assistant", "content": 'It says "late", yes.', "name": None},
]


def test_lists_that_python_wrote_into_cells_are_read(tmp_path: Path) -> None:
    table = pd.DataFrame({"messages": [TURNS, TURNS[:1] * 2], "label": [1.0, None]})
    table.to_csv(tmp_path / "log.csv")
    logs = read_logs(tmp_path / "log.csv")
    assert [turn.content for turn in logs.conversations[0].turns] == [
        turn["content"] for turn in TURNS
    ]


def test_words_that_look_like_python_stay_words(tmp_path: Path) -> None:
    said = "{'a': 1, 'b': __import__('os')}"
    talk = [{"role": "user", "content": said}, {"role": "assistant", "content": "['x']"}]
    (tmp_path / "log.jsonl").write_text(json.dumps({"messages": talk}))
    turns = read_logs(tmp_path / "log.jsonl").conversations[0].turns
    assert [turn.content for turn in turns] == [said, "['x']"]


def test_columns_by_row_number_are_a_table(tmp_path: Path) -> None:
    rows = [
        {"conversation_id": f"c{n}", "role": role, "content": f"{role} says {n}", "label": "up"}
        for n in range(3)
        for role in ("user", "assistant")
    ]
    pd.DataFrame(rows).to_json(tmp_path / "log.json")
    logs = read_logs(tmp_path / "log.json")
    assert [one.id for one in logs] == ["c0", "c1", "c2"]


def test_a_report_has_a_title_above_its_header_and_totals_below(tmp_path: Path) -> None:
    rows = ["Chats of October,,,", '"Oct 1, 2026",,,', ",,,", "conversation_id,role,content,label"]
    rows += [f"{n},{role},what {role} says,up" for n in (1, 2) for role in ("user", "assistant")]
    (tmp_path / "log.csv").write_text("\n".join([*rows, "Total chats: 2,,,", ""]))
    logs = read_logs(tmp_path / "log.csv")
    assert [(one.id, len(one.turns)) for one in logs] == [("1", 2), ("2", 2)]
    notes = " ".join(logs.notes)
    assert "log.csv:4 is the header of the table" in notes
    assert "log.csv:9 has totals, and is left out" in notes


def test_turns_of_a_row_stay_together_where_rows_have_the_same_minute(tmp_path: Path) -> None:
    rows = ["conversation_id,prompt,response,timestamp"]
    rows += [f"c,question {n},answer {n},2026-10-01 10:00" for n in range(3)]
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    turns = read_logs(tmp_path / "log.csv").conversations[0].turns
    assert [turn.content for turn in turns] == [
        f"{what} {n}" for n in range(3) for what in ("question", "answer")
    ]
