"""Logs whose columns and roles have names of their own: what is mapped, what is refused, what is proposed."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.logs import Logs
from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.mapping import PartAndColumnNamePairs, format_name_pairs, parse_name_pairs
from pollex.formats.read_logs import read_logs

HEAD = "chat_nr;absender;nachricht;note;zeit"
COLUMNS = "conversation=chat_nr,role=absender,text=nachricht,label=note,time=zeit"
ROLES = "user=Kunde,assistant=Bot"
SIDES: dict[str, Any] = {"positive": "gut", "negative": "schlecht"}


def german(folder: Path, head: str = HEAD) -> Path:
    lines = [head]
    for n in range(4):
        note = "gut" if n % 2 else "schlecht"
        said = (
            ("Kunde", "Wo ist mein Paket?"),
            ("Bot", "Ich sehe gern nach."),
            ("Kunde", f"Danke, Nummer {n}."),
        )
        lines += [
            f"K-{n};{who};{what};{note};2026-03-0{n + 1}T10:0{m}:00"
            for m, (who, what) in enumerate(said)
        ]
    path = folder / "chats.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(
    path: Path,
    columns: str | PartAndColumnNamePairs = COLUMNS,
    roles: str | PartAndColumnNamePairs = ROLES,
    **more: Any,
) -> Logs:
    return read_logs(
        path,
        options=ReadOptions(
            columns=parse_name_pairs(columns), roles=parse_name_pairs(roles), **{**SIDES, **more}
        ),
    )


def newest_first(folder: Path, times: Sequence[str]) -> Logs:
    said = [
        f"K;{who};{n};gut;{time}"
        for n, (who, time) in enumerate(zip(("Kunde", "Bot") * 2, times, strict=False))
    ]
    (folder / "chats.csv").write_text("\n".join([HEAD, *reversed(said)]) + "\n", encoding="utf-8")
    return read(folder / "chats.csv", roles=ROLES)


def test_turns_are_in_the_order_of_times_however_these_are_written(tmp_path: Path) -> None:
    iso = [f"2026-09-13T14:0{n}:00+00:00" for n in range(4)]
    for written, kept, note in (
        ("13.09.2026, 14:0{} Uhr", None, ""),
        ("09/13/2026 2:0{} PM", iso, ""),
        ("13/09/2026 14:0{}:00", iso, ""),
        ("03/09/2026 14:0{}", None, "dates may begin with the day or the month"),
    ):
        times = [written.format(n) for n in range(4)]
        logs = newest_first(tmp_path, times)
        assert [turn.content for turn in logs.conversations[0].turns] == ["0", "1", "2", "3"], (
            written
        )
        assert logs.conversations[0].metadata["timestamp"] == (kept or times)
        assert note in "".join(logs.notes)
        assert bool(note) == bool(logs.notes)
    for times in ([iso[0], "", *iso[2:]], ["gestern", *iso[1:]]):
        logs = newest_first(tmp_path, times)
        assert [turn.content for turn in logs.conversations[0].turns] == ["0", "1", "2", "3"], times
        assert logs.notes == ("1 turn has no time that can be read; the file's order counts there",)
    for times, says in (
        (["gestern", "heute"], "'heute' is no time → write times as 2026-12-31 14:00"),
        (["", "14:00"], "'14:00' is no time"),
    ):
        with pytest.raises(BadInput, match=says):
            newest_first(tmp_path, times)


def test_two_columns_for_one_part_are_refused_however_they_are_given(tmp_path: Path) -> None:
    for columns, more, says in (
        (
            f"{COLUMNS},text=zeit",
            {},
            "two columns are given for text: 'nachricht' and 'zeit' → give one",
        ),
        (COLUMNS, {"label_field": "zeit"}, "two columns are given for label: 'note' and 'zeit'"),
        (f"{COLUMNS},comment=note", {}, "the column 'note' is given as label and as comment"),
        ("wer=absender", {}, "no part is called 'wer' → parts are conversation, role, text"),
    ):
        with pytest.raises(WrongUse, match=says) as told:
            read(german(tmp_path), columns, **more)
        if "columns" in told.value.options and told.value.options["columns"] is not None:
            assert told.value.options == {"columns": COLUMNS}, (
                "all that is right stays in the option to copy"
            )
    with pytest.raises(ValueError, match="'absender' stands alone"):
        parse_name_pairs("absender")


def test_an_unknown_shape_shows_its_columns_and_proposes_all_that_reads_it(tmp_path: Path) -> None:
    path = german(tmp_path)
    with pytest.raises(BadInput, match="its columns are") as told:
        read_logs(path)
    assert "chat_nr    K-0 · K-1 · K-2  (conversation?)" in str(told.value)
    assert "note       schlecht · gut  (label?)" in str(told.value)
    assert told.value.options == {"columns": COLUMNS, "roles": "user=Kunde", **SIDES}
    proposed = {name: str(value) for name, value in told.value.options.items()}
    logs = read(path, proposed["columns"], proposed["roles"])
    assert [(one.id, one.label.value, [turn.role for turn in one.turns]) for one in logs][:2] == [
        ("K-0", "negative", ["user", "assistant", "user"]),
        ("K-1", "positive", ["user", "assistant", "user"]),
    ]
    with pytest.raises(BadInput, match="its columns are") as told:
        read(path, "text=nachricht", roles="")
    assert told.value.options == {"columns": COLUMNS, "roles": "user=Kunde", **SIDES}, (
        "what is said already stands in it"
    )
    with pytest.raises(BadInput, match="its columns are") as told:
        read_logs(german(tmp_path, "a;b;c;d;e"))
    columns = "conversation=a,role=b,text=c,label=d,time=e"
    assert told.value.options == {"columns": columns, "roles": "user=Kunde", **SIDES}, (
        "by what stands in them"
    )
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"a\x1b[31m": "x\u202ey", "$(rm -rf)": "z"}) + "\n", "utf-8")
    with pytest.raises(BadInput, match=r"its columns are(?s:(?!.*[\x1b\u202e]))"):
        read_logs(path)


def test_a_column_of_turns_and_a_pair_of_question_and_answer_are_guessed_too(
    tmp_path: Path,
) -> None:
    turns = [{"wer": "Kunde", "was": "Wo?"}, {"wer": "Bot", "was": "Hier."}]
    path = tmp_path / "logs.jsonl"
    path.write_text(
        "".join(json.dumps({"nr": n, "verlauf": turns, "daumen": "up"}) + "\n" for n in range(2)),
        "utf-8",
    )
    with pytest.raises(BadInput, match="its columns are") as told:
        read_logs(path)
    columns = "conversation=nr,messages=verlauf,role=wer,text=was,label=daumen"
    assert told.value.options == {"columns": columns, "roles": "user=Kunde"}, (
        "also of the turns in the list"
    )
    logs = read(path, columns, positive=None, negative=None)
    assert [turn.content for turn in next(iter(logs)).turns] == ["Wo?", "Hier."]
    assert logs.account.general == {"messages": 2}
    path.write_text(
        json.dumps({"frage": "Wo ist es?", "antwort": "Es ist hier."}) + "\n" * 2, "utf-8"
    )
    with pytest.raises(BadInput, match="its columns are") as told:
        read_logs(path)
    assert told.value.options == {"columns": "user=frage,assistant=antwort"}


def test_pairs_are_written_as_they_are_read() -> None:
    assert format_name_pairs(parse_name_pairs(COLUMNS)) == COLUMNS
    assert parse_name_pairs({"user": ["Kunde", "Gast"]}) == (("user", "Kunde"), ("user", "Gast"))
