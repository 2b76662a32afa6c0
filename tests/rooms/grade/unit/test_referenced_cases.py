"""Questions with references: rows that are refused, answers and people's grades joined to them, what is flagged."""

import json
from pathlib import Path
from typing import Any

import pytest

from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.write import write_rows
from pollex.rooms.grade.conversations.references import (
    ANSWER_LANGUAGE_FLAG,
    NO_REFERENCE_FLAG,
    REFERENCE_LANGUAGE_FLAG,
    ReferenceCase,
    ReferenceEvidence,
    detect_script,
)
from pollex.rooms.grade.formats.references import (
    add_answers,
    add_human_grades,
    drop_unusable_grades,
    read_cases,
)

ROW = {
    "question_id": 7,
    "category": "专业能力",
    "subcategory": "历史",
    "question": "原子弹之父于何时当选为美国科学院院士？",
    "reference": "他在1941年当选为美国科学院院士。",
    "evidences": [{"url": "https://example.org/a", "quote": "1941年，当选为美国国家科学院院士"}],
}
CHINESE = "请告诉我北京的天气如何以及应该穿什么"
ENGLISH = "It is cold there, so take a warm coat and good shoes with you."
WHY = "Why is the bread that has been in the oven for an hour so dry, and is it to be eaten with butter?"


def written(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )
    return str(path)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"question_id": 1, "reference": "yes"}, "no question"),
        *[
            (ROW | {"evidences": odd}, "no list of url and quote")
            for odd in ("a link", "[" * 100_000, [{"url": "u"}])
        ],
        *[
            (ROW | {"human": grade}, says)
            for grade, says in (("good", "'good'"), (True, "'True'"), ("nan", "no grade"))
        ],
        (ROW | {"question_id": 8, "question": "another?"}, "another question has the id '8'"),
    ],
)
def test_a_bad_row_is_counted_with_its_place_and_reason(
    tmp_path: Path, row: dict[str, Any], reason: str
) -> None:
    source = written(tmp_path / "q.jsonl", ROW | {"question_id": 8}, row)
    with pytest.raises(BadInput, match=r"1 bad row \(1 cause\)"):
        read_cases([source])
    found = read_cases([source], ReadOptions(max_bad=1))
    assert [case.id for case in found] == ["8"]
    assert [(bad.line, reason in bad.reason) for bad in found.bad_rows] == [(2, True)]
    with pytest.raises(BadInput, match="nothing in it could be used"):
        read_cases([written(tmp_path / "q.jsonl")])


def test_a_row_is_read_as_alignbench_has_it_once_and_evidence_from_a_cell_of_csv_too(
    tmp_path: Path,
) -> None:
    (case,) = read_cases([written(tmp_path / "q.jsonl", ROW, ROW)])
    quote = ReferenceEvidence(url="https://example.org/a", quote="1941年，当选为美国国家科学院院士")
    question = str(ROW["question"])
    reference = str(ROW["reference"])
    kind = {"category": "专业能力", "subcategory": "历史"}
    assert case == ReferenceCase(
        id="7", question=question, reference=reference, evidences=(quote,), **kind
    )
    assert case.flags == ()
    file = tmp_path / "q.csv"
    file.write_text(
        'id,question,reference,evidence\na,Why?,So.,"[{""url"": ""u"", ""quote"": ""q""}]"\n'
    )
    (case,) = read_cases([str(file)])
    assert case.evidences == (ReferenceEvidence(url="u", quote="q"),)


def test_a_case_survives_the_way_through_a_conversation_and_a_changed_copy_has_flags_of_its_own() -> (
    None
):
    case = ReferenceCase(id="1", question=CHINESE, reference=CHINESE, answer=CHINESE, human=8)
    assert ReferenceCase.of(case.conversation) == case
    assert [turn.role for turn in case.conversation.turns] == ["user", "assistant"]
    changed = case.model_copy(update={"answer": ENGLISH})
    assert (changed.flags, changed.conversation.turns[1].content) == (
        (ANSWER_LANGUAGE_FLAG,),
        ENGLISH,
    )


def test_answers_are_joined_by_id_or_words_and_those_missing_strange_and_repeated_are_told(
    tmp_path: Path,
) -> None:
    cases = read_cases([written(tmp_path / "q.jsonl", ROW, ROW | {"question_id": 8})])
    refused = {"id": "7", "answer": None, "outcome": "refused", "detail": "no"}
    joined = add_answers(
        cases, [written(tmp_path / "a.jsonl", refused, {"id": "99", "answer": "x"})]
    )
    assert [(case.answer, case.unanswered) for case in joined] == [
        (None, "refused: no"),
        (None, ""),
    ]
    assert joined.notes == ("1 answer is to none of the questions", "1 question has no answer")
    eight = {"id": "8", "answer": "x"}
    seven = {"id": "7", "answer": "x"}
    for bad, says, answers in (
        (
            seven | {"question": "Why?"},
            "answers another question than the one called '7'",
            [None, "x"],
        ),
        (eight | {"answer": "y"}, "a second answer to '8'", [None, "x"]),
    ):
        source = written(tmp_path / "a.jsonl", eight, bad)
        with pytest.raises(BadInput, match=says):
            add_answers(cases, [source])
        assert [
            case.answer for case in add_answers(cases, [source], ReadOptions(max_bad=1))
        ] == answers
    by_words = read_cases([written(tmp_path / "q.jsonl", {"question": "Why?", "reference": "So."})])
    (found,) = add_answers(
        by_words, [written(tmp_path / "a.jsonl", {"question": "Why?", "answer": "Yes."})]
    )
    assert found.answer == "Yes."


def test_what_a_table_guards_from_spreadsheets_is_graded_and_joined_as_it_was(
    tmp_path: Path,
) -> None:
    odd = ["- one\n- two", "=1+1", "\t=1", "＝1", "+49 30", "'tis so", "-2", "'-2", "plain"]
    columns = {"id": "VARCHAR", "question": "VARCHAR", "answer": "VARCHAR"}
    rows = [{"id": f"={n}", "question": "Why?", "answer": answer} for n, answer in enumerate(odd)]
    cases = read_cases(
        [written(tmp_path / "q.jsonl", *({"id": one["id"], "question": "Why?"} for one in rows))]
    )
    for name in ("a.csv", "a.jsonl"):
        write_rows(tmp_path / name, rows, columns)
        found = add_answers(cases, [str(tmp_path / name)])
        assert [(case.id, case.answer) for case in found] == [
            (f"={n}", one.strip()) for n, one in enumerate(odd)
        ]


def test_the_category_may_stand_in_a_column_of_another_name(tmp_path: Path) -> None:
    path = written(tmp_path / "q.jsonl", ROW | {"kind": "logical"}, ROW | {"question_id": 8})
    assert [case.category for case in read_cases([path], ReadOptions(category_field="kind"))] == [
        "logical",
        "",
    ]


def test_documents_come_with_the_question_or_with_the_answer_and_leave_the_fingerprint_of_others_alone(
    tmp_path: Path,
) -> None:
    shown = [{"text": "He was elected in 1941.", "title": "minutes"}, "A second page."]
    (case,) = read_cases([written(tmp_path / "q.jsonl", ROW | {"retrieved_contexts": shown})])
    assert [(source.name, source.text) for source in case.sources] == [
        ("minutes", "He was elected in 1941."),
        ("", "A second page."),
    ]
    answer = {"id": "7", "answer": "In 1941.", "passages": ["Another page."]}
    plain = read_cases([written(tmp_path / "q.jsonl", ROW)])
    named = ReadOptions(sources_field="passages")
    (answered,) = add_answers(plain, [written(tmp_path / "a.jsonl", answer)], named)
    assert [source.text for source in answered.sources] == ["Another page."]
    assert ReferenceCase.of(answered.conversation) == answered
    assert "sources" not in plain.cases[0].conversation.metadata


def test_grades_of_people_come_from_a_file_by_id_and_second_ones_and_those_of_others_are_told(
    tmp_path: Path,
) -> None:
    cases = read_cases([written(tmp_path / "q.jsonl", ROW, ROW | {"question_id": 8})])
    (tmp_path / "h.csv").write_text("id,score\n8,6.5\n7,\n")
    assert [
        case.human
        for case in add_human_grades(cases, [str(tmp_path / "h.csv")], human_field="score")
    ] == [None, 6.5]
    graded = [
        {"id": "7", "grade": 5},
        {"id": 7, "grade": 5.0},
        {"id": "7", "grade": 2},
        {"id": "nobody", "grade": 1},
    ]
    human = written(tmp_path / "h.jsonl", *graded)
    with pytest.raises(BadInput, match=r"h\.jsonl:3: a second grade of '7'"):
        add_human_grades(cases, [human])
    found = add_human_grades(cases, [human], ReadOptions(max_bad=1))
    assert [case.human for case in found] == [5, None]
    (note,) = found.notes
    assert note.startswith("1 grade is of none of the questions, the first at ")
    assert note.endswith(":4 → give them the questions' ids")
    with pytest.raises(
        BadInput,
        match=r"h\.jsonl:1: 1 grade is of none of the questions → give them the questions' ids",
    ):
        add_human_grades(cases, [written(tmp_path / "h.jsonl", graded[3])])


@pytest.mark.parametrize(
    ("question", "reference", "answer", "flags"),
    [
        (CHINESE, "", None, (NO_REFERENCE_FLAG,)),
        (CHINESE, ENGLISH, CHINESE, (REFERENCE_LANGUAGE_FLAG,)),
        (CHINESE, CHINESE, ENGLISH, (ANSWER_LANGUAGE_FLAG,)),
        (CHINESE, CHINESE, CHINESE, ()),
        ("请把这段话翻译成英文：今天天气很好", ENGLISH, ENGLISH, ()),
        ("请把这段话翻译成英文：今天天气很好", ENGLISH, CHINESE, (ANSWER_LANGUAGE_FLAG,)),
        (CHINESE, "B", "C", ()),
        (CHINESE, "f'(x) = sin(x) + cos(x) * tan(x) - log(x)", CHINESE, ()),
    ],
)
def test_a_missing_reference_and_texts_in_other_languages_are_flagged(
    question: str, reference: str, answer: str | None, flags: tuple[str, ...]
) -> None:
    assert (
        ReferenceCase(id="1", question=question, reference=reference, answer=answer).flags == flags
    )


def test_a_script_is_told_only_where_most_of_the_prose_is_in_it() -> None:
    code = "```python\nfor each_item in every_list: print(each_item, each_item)\n```"
    link = "see https://example.org/some/long/path/with/many/words/in/it"
    for text, script in {
        ENGLISH: "Latin",
        CHINESE: "Han",
        "これは日本語の文章です。漢字もあります。": "Kana",
        "Это совсем другой язык и другой алфавит": "Cyrillic",
        **dict.fromkeys(("yes", "", "A B C D E F G H", ENGLISH + CHINESE, code, link)),
    }.items():
        assert detect_script(text) == script, text


@pytest.mark.parametrize(("unit", "language"), [("a", False), ("饭", True), ("`a", False)])
def test_a_long_text_without_spaces_is_read_once_and_not_from_each_of_its_characters(
    unit: str, language: bool
) -> None:
    # From each it would take many times the suite's limit for a test.
    found = ReferenceCase(id="1", question=WHY, reference=unit * 400_000, answer="a@b").flags
    assert any("language" in flag for flag in found) is language


def test_the_fingerprint_knows_reference_and_answer(tmp_path: Path) -> None:
    prints = {
        read_cases([written(tmp_path / "q.jsonl", row)]).fingerprint
        for row in (ROW, ROW | {"reference": "x"}, ROW | {"answer": "x"}, ROW | {"human": 1})
    }
    assert len(prints) == 4


def test_peoples_grades_off_the_scale_or_of_no_answer_are_left_out_and_told(tmp_path: Path) -> None:
    rows = [
        ROW | {"question_id": i, "human": grade, "answer": "1941"}
        for i, grade in enumerate((0.5, 1, 10, 85))
    ]
    rows += [ROW | {"question_id": 4, "human": 7}]
    found = drop_unusable_grades(read_cases([written(tmp_path / "q.jsonl", *rows)]), 1, 10)
    assert [case.human for case in found] == [None, 1, 10, None, None]
    assert found.notes == (
        "2 of people's grades are off the scale from 1 to 10, the first that of '0', and left out → correct them",
        "1 of people's grades is of answers that aren't there, the first that of '4', and left out → add the answers",
    )


def test_questions_and_their_answers_in_another_file_have_the_same_placeholders(
    tmp_path: Path,
) -> None:
    rows = [
        {"id": "q", "reference": "(415) 555-2671", "question": "Is anna.b@example.com mine?"},
        {"id": "r", "answer": "b@example.com", "question": "Is anna.b@example.com mine?"},
    ]
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    one, two = read_cases([str(path)], ReadOptions(redact="yes")).cases
    assert (one.question, two.question) == ("Is <MAIL_1> mine?",) * 2
    assert two.answer == "<MAIL_2>"
