"""What can be read in one way alone is read without asking; where a doubt is left, it is proposed."""

from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.conversation import Label
from pollex.formats.certainty import are_values_known
from pollex.formats.columns import Column
from pollex.formats.fields import ReadOptions
from pollex.formats.proposal import UnmappedLog
from pollex.formats.read_logs import read_logs, read_logs_from_rows

WORDS = [
    ("Where is parcel {n}?", "Parcel {n} comes on Friday."),
    ("Can I return lamp {n}?", "Yes, lamp {n} goes back within two weeks."),
]
NAMES = {"case": "case_id", "who": "sent by", "what": "words said", "mark": "customer rating"}
SPEAKERS = ("Visitor", "Virtual agent")


def rows_of(
    marks: tuple[Any, Any] = ("good", "bad"),
    speakers: tuple[str, str] = SPEAKERS,
    **named: str,
) -> list[dict[str, Any]]:
    names = NAMES | named
    rows = []
    for number in range(8):
        for pair in WORDS:
            for speaker, words in zip(speakers, pair, strict=True):
                row = {
                    names["case"]: f"C-{number}",
                    names["who"]: speaker,
                    names["what"]: words.format(n=number),
                    names["mark"]: marks[number % 2],
                }
                rows.append(row)
    return rows


def test_a_table_whose_names_and_values_say_all_is_read_without_asking() -> None:
    logs = read_logs_from_rows(rows_of())
    assert (logs.counts[Label.POSITIVE], logs.counts[Label.NEGATIVE]) == (4, 4)
    assert [turn.role for turn in logs[0].turns] == ["user", "assistant"] * 2
    assert dict(logs.columns)["conversation"] == "case_id"
    assert any("in one way alone: columns='conversation=case_id" in note for note in logs.notes)


def test_who_is_shown_what_is_read_anyway_is_asked_all_the_same() -> None:
    with pytest.raises(UnmappedLog, match="Is this what was said"):
        read_logs_from_rows(rows_of(), options=ReadOptions(confirm=True))


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(rows_of(marks=("blue", "green")), id="values that nobody knows"),
        pytest.param(rows_of(marks=(1, 6)), id="numbers of which less may be better"),
        pytest.param(rows_of(mark="success", marks=("yes", "no")), id="what a program found out"),
        pytest.param(rows_of(speakers=("Mary", "Zed")), id="speakers that nobody knows"),
        pytest.param(rows_of(case="block"), id="a column that names no conversation"),
        pytest.param(
            [row | {"second rating": ("bad", "good")[n % 2]} for n, row in enumerate(rows_of())],
            id="two columns that may be the label",
        ),
        pytest.param(
            [row | {"chat": f"K{n // 8}"} for n, row in enumerate(rows_of())],
            id="two columns that may name the conversation",
        ),
    ],
)
def test_a_doubt_about_any_part_is_asked_about(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(UnmappedLog):
        read_logs_from_rows(rows)


def test_people_with_names_of_their_own_are_users_where_the_other_side_is_known() -> None:
    rows = rows_of(speakers=("mary@web.example", "Support"))
    for row in rows[16:]:
        if row["sent by"] != "Support":
            row["sent by"] = "zed@web.example"
    assert [turn.role for turn in read_logs_from_rows(rows)[7].turns] == ["user", "assistant"] * 2


def test_a_system_that_alone_answers_users_is_the_assistant() -> None:
    rows = []
    for number in range(4):
        turns = []
        for question, answer in WORDS:
            turns.append({"speaker": "USER", "utterance": question.format(n=number)})
            turns.append({"speaker": "SYSTEM", "utterance": answer.format(n=number)})
        rows.append(
            {"dialogue_id": f"d{number}", "turns": turns, "rating": ("up", "down")[number % 2]}
        )

    logs = read_logs_from_rows(rows)
    assert [turn.role for turn in logs[0].turns] == ["user", "assistant"] * 2
    assert any("nobody else" in note for note in logs.notes)


def test_messages_that_name_speakers_by_ids_have_the_roles_of_the_list_of_people() -> None:
    rows = []
    for number in range(4):
        messages = []
        for pair in WORDS:
            for speaker, words in zip(("p1", "p2"), pair, strict=True):
                messages.append({"participantId": speaker, "body": words.format(n=number)})
        people = [{"id": "p1", "purpose": "customer"}, {"id": "p2", "purpose": "bot"}]
        rows.append(
            {"participants": people, "messages": messages, "rating": ("up", "down")[number % 2]}
        )

    logs = read_logs_from_rows(rows)
    assert [turn.role for turn in logs[0].turns] == ["user", "assistant"] * 2
    assert logs[0].turns[1].content == "Parcel 0 comes on Friday."


def test_talks_as_texts_are_read_beside_the_table_of_their_labels(tmp_path: Path) -> None:
    marks = ["file,quality"]
    for number in range(4):
        lines = []
        for question, answer in WORDS:
            lines += [f"Customer: {question.format(n=number)}", f"Agent: {answer.format(n=number)}"]
        (tmp_path / f"talk_{number}.txt").write_text("\n".join(lines), encoding="utf-8")
        marks.append(f"talk_{number}.txt,{('good', 'bad')[number % 2]}")

    (tmp_path / "labels.csv").write_text("\n".join(marks), encoding="utf-8")
    logs = read_logs(tmp_path)
    assert (logs.counts[Label.POSITIVE], logs.counts[Label.NEGATIVE]) == (2, 2)


def test_a_label_with_words_that_nobody_knows_is_asked_about() -> None:
    known = Column("rating", ["very good", "not good", "no answer"] * 2)
    assert are_values_known(known)
    assert not are_values_known(Column("rating", ["good", "bad", "quasi good"] * 2))
