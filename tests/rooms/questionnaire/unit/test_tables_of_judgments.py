"""Tables of judgments: what doesn't join is counted and shown, the rest becomes judgments and a questionnaire."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pollex.calibration.judgments import Judgments
from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import BadInput, BadLabels, WrongUse
from pollex.rooms.questionnaire.formats.judgments import JudgmentTable
from pollex.rooms.questionnaire.formats.read_tables import read_answers, read_judgments

ANSWERS = [
    f"t{text},{question},{option},0.25"
    for text in (1, 2, 3)
    for question in "AB"
    for option in (1, 2, 3)
]
JUDGED = ["t1,A,ann,1", "t2,A,ann,3", "t1,A,bob,2", "t2,A,bob,2"]


def read(
    folder: Path, judged: Sequence[str] = JUDGED, main: str | None = "A", **given: object
) -> JudgmentTable:
    answers = folder / "answers.csv"
    judgments = folder / "judgments.csv"
    answers.write_text(
        "\n".join(["text_id,question,option,probability", *ANSWERS]), encoding="utf-8"
    )
    judgments.write_text("\n".join(["text_id,question,judge,answer", *judged]), encoding="utf-8")
    return read_judgments(judgments, read_answers(answers), main=main, **given)  # type: ignore[arg-type]


def tuples(found: Judgments) -> list[tuple[int, int, object, int]]:
    arrays = (
        found.row.tolist(),
        found.question.tolist(),
        found.names().tolist(),
        found.answer.tolist(),
    )
    return list(zip(*arrays, strict=True))


def test_nothing_that_joins_is_refused_with_ids_of_both_tables(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"judged are 'x1', 'x2', answered 't1', 't2', 't3'"):
        read(tmp_path, ["x1,A,ann,1", "x2,A,ann,2"])


@pytest.mark.parametrize(
    ("more", "what", "example", "left_out", "kept"),
    [
        (["x1,A,ann,1"], "", "judgments.csv:6 (x1, A, judge ann: 1)", True, 4),
        (["t3,A,ann,7"], "with an unknown option", "judgments.csv:6", True, 4),
        (["t3,A,ann,good"], "no number", "judgments.csv:6", True, 4),
        (["t3,A,ann,"], "without an answer", "judgments.csv:6", False, 4),
        (["t1,B,ann,2", "t2,B,ann,2"], "", "'B'", True, 4),
        (["t3,A,cy,3"], "", "cy", False, 5),
        (["t1,A,ann,2"], "", "t1, judge ann", False, 5),
    ],
)
def test_what_teaches_nothing_is_left_out_or_noted_and_shown(
    tmp_path: Path, more: list[str], what: str, example: str, left_out: bool, kept: int
) -> None:
    table = read(tmp_path, [*JUDGED, *more])
    (fault,) = table.faults
    assert (what in fault.what, fault.left_out, len(table.judgments)) == (True, left_out, kept)
    assert example in fault.examples[0]


def test_answers_in_words_throughout_are_refused_for_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput,
        match=r"no judgment can be used; 2 judgments whose answer is no number: .*ann: good",
    ) as caught:
        read(tmp_path, ["t1,A,ann,good", "t2,A,ann,bad"], main=None)
    assert "number" in caught.value.hint


def test_a_main_question_with_one_answer_only_teaches_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadLabels, match="all 2 answers to the main question 'A' are alike"):
        read(tmp_path, ["t1,A,ann,1", "t2,A,ann,1"])
    with pytest.raises(BadLabels, match="nobody answered the main question 'B'"):
        read(tmp_path, main="B")


def test_which_question_is_the_main_one_is_told_or_asked_for(tmp_path: Path) -> None:
    both = [*JUDGED, "t1,B,ann,1", "t2,B,ann,2"]
    with pytest.raises(WrongUse, match="name one of A, B: main="):
        read(tmp_path, both, main=None)
    with pytest.raises(WrongUse, match="no question is called 'C'"):
        read(tmp_path, both, main="C")
    with pytest.raises(WrongUse, match="no question is called 'C'"):
        read(tmp_path, both, nominal=["C"])
    # the only one that people answered
    assert read(tmp_path, main=None).questionnaire.main == "A"
    thumbs = ["t1,thumb,,0", "t2,thumb,,1"]
    assert read(tmp_path, thumbs, main=None).questionnaire.main == "thumb"
    overall = [*both, "t1,overall,ann,0", "t2,overall,bob,1"]
    assert read(tmp_path, overall, main=None).questionnaire.main == "overall"


def test_questions_that_only_people_answer_join_the_questionnaire(tmp_path: Path) -> None:
    judged = [*JUDGED, "t1,thumb,,0", "t2,thumb,,1", "t1,mood,ann,5"]
    table = read(tmp_path, judged, main="thumb", nominal=["B"])
    three = (1.0, 2.0, 3.0)
    expected = (
        Scale("A", three),
        Scale("B", three, ordinal=False),
        Scale("thumb", (0.0, 1.0), asked=False),
    )
    assert table.questionnaire == Questionnaire(expected, "thumb")
    assert tuples(table.judgments)[-2:] == [(0, 2, None, 0), (1, 2, None, 1)]
    assert [fault.examples for fault in table.faults] == [("'mood' with 1",)]


def test_a_known_questionnaire_stays_as_it_is(tmp_path: Path) -> None:
    known = read(tmp_path).questionnaire
    table = read(tmp_path, [*JUDGED, "t1,thumb,,0", "t2,thumb,,1"], questionnaire=known)
    assert table.questionnaire is known
    assert len(table.judgments) == 4
    assert [
        "whose question the questionnaire doesn't have" in fault.what for fault in table.faults
    ] == [True]


def test_the_authors_table_is_read_as_it_is(tmp_path: Path) -> None:
    answers = tmp_path / "their-llm.tsv"
    judgments = tmp_path / "their-human.tsv"
    lines = [
        f"V1_{text}\t{q}\t1\t0.5\t0.2\t0.2\t0.{q[1]}" for text in (1, 2) for q in ("Q0", "Q4", "Q8")
    ]
    header = (
        "text_id\tcriterion\tsample_llm\tanswer1_prob\tanswer2_prob\tanswer3_prob\tanswer4_prob"
    )
    answers.write_text("\n".join([header, *lines]).replace("0.8", "0"), encoding="utf-8")
    rows = [
        "round1\tV1_1\t1\t4.0\t3\t3\t21",
        "round1\tV1_2\t2\t\t1\t2\t21",
        "round2\tV1_2\t2\t1.0\t0\t1\t3",
    ]
    judgments.write_text(
        "\n".join(["round\ttext_id\tDQQ0\tQ4\tQ8\tQ0\tannotator_id", *rows]).replace("4.0", "3.0"),
        encoding="utf-8",
    )
    table = read_judgments(judgments, read_answers(answers))
    assert [scale.question for scale in table.questionnaire.scales] == ["Q0", "Q4", "Q8"]
    assert [scale.ordinal for scale in table.questionnaire.scales] == [True, True, False]
    assert sorted(tuples(table.judgments)) == [
        (0, 0, "21", 2),
        (0, 1, "21", 2),
        (0, 2, "21", 2),
        (1, 0, "21", 1),
        (1, 0, "3", 0),
        (1, 1, "3", 0),
        (1, 2, "21", 0),
    ]
    assert [fault.left_out for fault in table.faults] == [False]
