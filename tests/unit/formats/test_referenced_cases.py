"""Questions with references: rows that are refused, answers and people's grades joined to them, what is flagged."""

import json
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.references import (
    ANSWER_LANGUAGE,
    NO_REFERENCE,
    REFERENCE_LANGUAGE,
    Case,
    Evidence,
    script_of,
)
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.references import read_cases, usable_grades, with_answers, with_humans
from pollex.formats.write import write_rows

ROW = {
    "question_id": 7,
    "category": "专业能力",
    "subcategory": "历史",
    "question": "原子弹之父于何时当选为美国科学院院士？",
    "reference": "他在1941年当选为美国科学院院士。",
    "evidences": [{"url": "https://example.org/a", "quote": "1941年，当选为美国国家科学院院士"}],
}
CHINESE, ENGLISH = (
    "请告诉我北京的天气如何以及应该穿什么",
    "It is cold there, so take a warm coat and good shoes with you.",
)
WHY = "Why is the bread that has been in the oven for an hour so dry, and is it to be eaten with butter?"


def written(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"question_id": 1, "reference": "yes"}, "no question"),
        (ROW | {"evidences": "a link"}, "evidences are no list of url and quote"),
        (ROW | {"evidences": "[" * 100_000}, "evidences are no list of url and quote"),
        (ROW | {"evidences": [{"url": "u"}]}, "evidences are no list of url and quote"),
        (ROW | {"human": "good"}, "no grade: 'good'"),
        (ROW | {"human": True}, "no grade: 'True'"),
        (ROW | {"human": "nan"}, "no grade"),
    ],
)
def test_a_bad_row_is_counted_with_its_place_and_reason(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    source = written(tmp_path / "q.jsonl", ROW | {"question_id": 8}, row)
    with pytest.raises(BadInput, match=r"1 bad row \(1 cause\)"):
        read_cases([source])
    found = read_cases([source], ReadOptions(max_bad=1))
    assert [case.id for case in found] == ["8"]
    assert [(bad.line, reason in bad.reason) for bad in found.bad_rows] == [(2, True)]


def test_another_question_under_the_same_id_is_a_bad_row_and_the_same_one_is_nothing(tmp_path: Path) -> None:
    source = written(tmp_path / "q.jsonl", ROW, ROW, ROW | {"question": "another?"})
    found = read_cases([source], ReadOptions(max_bad=1))
    assert len(found) == 1
    assert found.bad_rows[0].reason == "another question has the id '7'"


def test_a_file_without_a_question_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nothing in it could be used"):
        read_cases([written(tmp_path / "q.jsonl")])


def test_a_row_is_read_as_alignbench_has_it(tmp_path: Path) -> None:
    (case,) = read_cases([written(tmp_path / "q.jsonl", ROW)])
    quote = Evidence(url="https://example.org/a", quote="1941年，当选为美国国家科学院院士")
    assert case == Case(
        id="7",
        question=str(ROW["question"]),
        reference=str(ROW["reference"]),
        evidences=(quote,),
        category="专业能力",
        subcategory="历史",
    )
    assert case.flags == ()


def test_a_case_survives_the_way_through_a_conversation(tmp_path: Path) -> None:
    (case,) = read_cases([written(tmp_path / "q.jsonl", ROW | {"answer": "1941年", "human": 8})])
    assert Case.of(case.conversation) == case
    assert [turn.role for turn in case.conversation.turns] == ["user", "assistant"]


def test_evidence_is_read_from_a_cell_of_csv(tmp_path: Path) -> None:
    file = tmp_path / "q.csv"
    file.write_text('id,question,reference,evidence\na,Why?,So.,"[{""url"": ""u"", ""quote"": ""q""}]"\n')
    (case,) = read_cases([str(file)])
    assert case.evidences == (Evidence(url="u", quote="q"),)


def test_a_question_without_an_id_is_known_by_its_words(tmp_path: Path) -> None:
    source = written(tmp_path / "q.jsonl", {"question": "Why?", "reference": "So."})
    cases = with_answers(read_cases([source]), [written(tmp_path / "a.jsonl", {"question": "Why?", "answer": "Yes."})])
    assert cases.cases[0].answer == "Yes."


def test_an_answer_to_another_wording_of_a_question_is_a_bad_row(tmp_path: Path) -> None:
    cases = read_cases([written(tmp_path / "q.jsonl", ROW, ROW | {"question_id": 8})])
    answers = written(tmp_path / "a.jsonl", {"id": "8", "answer": "x"}, {"id": "7", "question": "Why?", "answer": "x"})
    with pytest.raises(BadInput, match="answers another question than the one called '7'"):
        with_answers(cases, [answers])
    assert [case.answer for case in with_answers(cases, [answers], ReadOptions(max_bad=1))] == [None, "x"]


def test_answers_are_joined_and_those_missing_and_strange_are_told(tmp_path: Path) -> None:
    cases = read_cases([written(tmp_path / "q.jsonl", ROW, ROW | {"question_id": 8})])
    answers = written(
        tmp_path / "a.jsonl",
        {"id": "7", "answer": None, "outcome": "refused", "detail": "no"},
        {"id": "99", "answer": "x"},
    )
    joined = with_answers(cases, [answers])
    assert [(case.answer, case.unanswered) for case in joined] == [(None, "refused: no"), (None, "")]
    assert joined.notes == ("1 answer is to none of the questions", "1 question has no answer")


@pytest.mark.parametrize("answer", ["- one\n- two", "=1+1", "\t=1", "＝1", "+49 30", "'tis so", "-2", "'-2", "plain"])
def test_what_a_table_guards_from_spreadsheets_is_graded_and_joined_as_it_was(tmp_path: Path, answer: str) -> None:
    columns = {"id": "VARCHAR", "question": "VARCHAR", "answer": "VARCHAR"}
    rows = [{"id": id_, "question": "Why?", "answer": answer} for id_ in ("=7", "@8")]
    cases = read_cases([written(tmp_path / "q.jsonl", *({"id": one["id"], "question": "Why?"} for one in rows))])
    for name in ("a.csv", "a.jsonl"):
        write_rows(tmp_path / name, rows, columns)
        found = with_answers(cases, [str(tmp_path / name)])
        assert [(case.id, case.answer) for case in found] == [("=7", answer.strip()), ("@8", answer.strip())]


def test_the_category_may_stand_in_a_column_of_another_name_and_a_name_that_no_row_has_is_refused(
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "q.jsonl", ROW | {"kind": "logical"}, ROW | {"question_id": 8})
    assert [case.category for case in read_cases([path], ReadOptions(category_field="kind"))] == ["logical", ""]
    with pytest.raises(BadInput, match="no question has a category in 'knd'"):
        read_cases([path], ReadOptions(category_field="knd"))


def test_a_second_answer_to_a_question_is_a_bad_row(tmp_path: Path) -> None:
    cases = read_cases([written(tmp_path / "q.jsonl", ROW)])
    answers = written(tmp_path / "a.jsonl", {"id": "7", "answer": "x"}, {"id": "7", "answer": "y"})
    with pytest.raises(BadInput, match="a second answer to '7'"):
        with_answers(cases, [answers])


def test_grades_of_people_come_from_a_file_by_id(tmp_path: Path) -> None:
    cases = read_cases([written(tmp_path / "q.jsonl", ROW, ROW | {"question_id": 8})])
    human = tmp_path / "h.csv"
    human.write_text("id,score\n8,6.5\n7,\n")
    assert [case.human for case in with_humans(cases, [str(human)], human_field="score")] == [None, 6.5]


def test_a_second_grade_of_an_answer_is_a_bad_row_and_those_of_others_are_told(tmp_path: Path) -> None:
    cases = read_cases([written(tmp_path / "q.jsonl", ROW)])
    graded = [{"id": "7", "grade": 5}, {"id": 7, "grade": 5.0}, {"id": "7", "grade": 2}, {"id": "nobody", "grade": 1}]
    human = written(tmp_path / "h.jsonl", *graded)
    with pytest.raises(BadInput, match=r"h\.jsonl:3: a second grade of '7'"):
        with_humans(cases, [human])
    found = with_humans(cases, [human], ReadOptions(max_bad=1))
    assert [case.human for case in found] == [5]
    (note,) = found.notes
    assert note.startswith("1 grade is of none of the questions, the first at ")
    assert note.endswith(":4 → give them the questions' ids")


def test_grades_of_nothing_that_was_asked_are_bad_input(tmp_path: Path) -> None:
    cases = read_cases([written(tmp_path / "q.jsonl", ROW)])
    human = written(tmp_path / "h.jsonl", {"id": "nobody", "grade": 5})
    told = r"h\.jsonl:1: 1 grade is of none of the questions → give them the questions' ids"
    with pytest.raises(BadInput, match=told):
        with_humans(cases, [human])


@pytest.mark.parametrize(
    ("question", "reference", "answer", "flags"),
    [
        (CHINESE, "", None, (NO_REFERENCE,)),
        (CHINESE, ENGLISH, CHINESE, (REFERENCE_LANGUAGE,)),
        (CHINESE, CHINESE, ENGLISH, (ANSWER_LANGUAGE,)),
        (CHINESE, CHINESE, CHINESE, ()),
        ("请把这段话翻译成英文：今天天气很好", ENGLISH, ENGLISH, ()),
        ("请把这段话翻译成英文：今天天气很好", ENGLISH, CHINESE, (ANSWER_LANGUAGE,)),
        (CHINESE, "B", "C", ()),
        (CHINESE, "f'(x) = sin(x) + cos(x) * tan(x) - log(x)", CHINESE, ()),
    ],
)
def test_a_missing_reference_and_texts_in_other_languages_are_flagged(
    question: str, reference: str, answer: str | None, flags: tuple[str, ...]
) -> None:
    assert Case(id="1", question=question, reference=reference, answer=answer).flags == flags


@pytest.mark.parametrize(
    ("text", "script"),
    [
        (ENGLISH, "Latin"),
        (CHINESE, "Han"),
        ("これは日本語の文章です。漢字もあります。", "Kana"),
        ("Это совсем другой язык и другой алфавит", "Cyrillic"),
        ("yes", None),
        ("", None),
        ("A B C D E F G H", None),
        (ENGLISH + CHINESE, None),
        ("```python\nfor each_item in every_list: print(each_item, each_item)\n```", None),
        ("see https://example.org/some/long/path/with/many/words/in/it", None),
    ],
)
def test_a_script_is_told_only_where_most_of_the_prose_is_in_it(text: str, script: str | None) -> None:
    assert script_of(text) == script


@pytest.mark.parametrize(("unit", "language"), [("a", False), ("饭", True), ("`a", False)])
def test_a_long_text_without_spaces_is_read_once_and_not_from_each_of_its_characters(unit: str, language: bool) -> None:
    # From each it would take many times the suite's limit for a test.
    found = Case(id="1", question=WHY, reference=unit * 400_000, answer="a@b").flags
    assert any("language" in flag for flag in found) is language


def test_the_fingerprint_knows_reference_and_answer(tmp_path: Path) -> None:
    prints = {
        read_cases([written(tmp_path / "q.jsonl", row)]).fingerprint
        for row in (ROW, ROW | {"reference": "x"}, ROW | {"answer": "x"}, ROW | {"human": 1})
    }
    assert len(prints) == 4


def test_peoples_grades_off_the_scale_or_of_no_answer_are_left_out_and_told(tmp_path: Path) -> None:
    rows = [ROW | {"question_id": i, "human": grade, "answer": "1941"} for i, grade in enumerate((0.5, 1, 10, 85))]
    rows += [ROW | {"question_id": 4, "human": 7}]
    found = usable_grades(read_cases([written(tmp_path / "q.jsonl", *rows)]), 1, 10)
    assert [case.human for case in found] == [None, 1, 10, None, None]
    assert found.notes == (
        "2 of people's grades are off the scale from 1 to 10, the first that of '0', and left out → correct them",
        "1 of people's grades is of answers that aren't there, the first that of '4', and left out → add the answers",
    )


def test_a_changed_copy_of_a_case_is_another_conversation_with_other_flags() -> None:
    case = Case(id="1", question=CHINESE, reference=CHINESE, answer=CHINESE)
    assert (case.flags, case.conversation.turns[1].content) == ((), CHINESE)
    changed = case.model_copy(update={"answer": ENGLISH})
    assert (changed.flags, changed.conversation.turns[1].content) == ((ANSWER_LANGUAGE,), ENGLISH)
