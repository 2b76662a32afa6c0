"""Tables of answers: what is wrong in them is counted, shown with its line and left out; the rest becomes X."""

import json
from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pytest

from pollex.calibration.questionnaire import Questionnaire, Scale
from pollex.errors import BadInput, WrongUse
from pollex.formats.csv_rows import escape_formula
from pollex.rooms.questionnaire.formats.answer_tables import TABLE_SHAPES
from pollex.rooms.questionnaire.formats.answers import AnswerTable
from pollex.rooms.questionnaire.formats.read_tables import read_answers, read_judgments

HEADER = "text_id,question,option,probability"
NO_NUMBER = ("nan", "inf", "", "often")
WHOLE = ["t1,Q1,1,0.2", "t1,Q1,2,0.7", "t2,Q1,1,0.4", "t2,Q1,2,0.6"]


def written(
    folder: Path, lines: Sequence[str], name: str = "answers.csv", header: str = HEADER
) -> Path:
    path = folder / name
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def read(folder: Path, *more: str, **given: object) -> AnswerTable:
    return read_answers(written(folder, [*WHOLE, *more]), **given)  # type: ignore[arg-type]


def test_an_option_that_hardly_any_text_has_is_told_unless_the_options_are_given(
    tmp_path: Path,
) -> None:
    lines = [f"t{n},Q1,{option},0.5" for n in range(40) for option in (1, 2)]
    stray = written(tmp_path, [*lines, "t3,Q1,7,0.0"])
    (fault,) = read_answers(stray).faults
    assert (fault.left_out, fault.examples) == (False, ("7 of 'Q1' in 1 of 40",))
    assert read_answers(stray).scales[0].values == (1, 2, 7)
    (given,) = read_answers(stray, options={"Q1": (1, 2)}).faults
    assert given.left_out
    few = [f"t{n},Q1,{option},0.5" for n in range(19) for option in (1, 2)]
    assert read_answers(written(tmp_path, [*few, "t3,Q1,3,0.0"])).faults == ()


WRONG = [("-0.1", "below 0"), ("1.5", "over 1"), *((odd, "without a number") for odd in NO_NUMBER)]
OTHER = ("t3,Q2,1,0.5", "t3,Q2,2,0.5")


@pytest.mark.parametrize(
    ("more", "options", "what", "shown"),
    [
        *[
            (("t3,Q1,1,0.5", f"t3,Q1,2,{one}", *OTHER), None, what, f"7 (t3, Q1, option 2: {one})")
            for one, what in WRONG
        ],
        (
            ("t3,Q1,1,0.3", "t3,Q1,2,0.3", "t3,Q1,9,0.3"),
            {"Q1": (1, 2)},
            "with an unknown option",
            "answers.csv:8",
        ),
        (("t1,Q2,1,0.9", "t2,Q2,1,0.8"), None, "option", "'Q2' with 1"),
        ((",Q1,1,0.3",), None, "without a text_id", "answers.csv:6"),
        (("t3,Q1,1",), None, "", "answers.csv:6"),
    ],
)
def test_what_is_wrong_in_a_table_is_counted_and_shown_with_its_line(
    tmp_path: Path, more: Sequence[str], options: dict[str, object] | None, what: str, shown: str
) -> None:
    table = read(tmp_path, *more, options=options)
    (fault,) = table.faults
    assert (what in fault.what, fault.count, fault.left_out) == (True, 1, True)
    assert shown in str(fault)
    np.testing.assert_array_equal(table.X[:2, :2], [[0.2, 0.7], [0.4, 0.6]])


IDS = ("=1+1", "@dee", "-ann", "'quoted'", "-2", "plain")


def test_ids_that_pollex_guarded_against_spreadsheets_are_read_as_they_were(tmp_path: Path) -> None:
    lines = [f"{escape_formula(text)},Q1,{option},0.4" for text in IDS for option in (1, 2)]
    assert [line for line in lines if line.startswith("'=1+1")]
    assert read_answers(written(tmp_path, lines)).texts == IDS
    odd = ("=1", "'=1", "''=1")
    guarded = [f"{escape_formula(text)},Q1,{option},0.4" for text in odd for option in (1, 2)]
    assert read_answers(written(tmp_path, guarded)).texts == odd
    given = [
        f"{escape_formula(text)},Q1,{escape_formula('=cy')},{1 + place % 2}"
        for place, text in enumerate(IDS)
    ]
    judgments = written(tmp_path, given, "judgments.csv", "text_id,question,judge,answer")
    plain = written(
        tmp_path, [f"{text},Q1,{option},0.4" for text in IDS for option in (1, 2)], "plain.csv"
    )
    judged = read_judgments(judgments, read_answers(plain))
    assert judged.judgments.row.tolist() == list(range(len(IDS)))
    assert (judged.judgments.judges, judged.faults) == (("=cy",), ())


def test_names_of_texts_questions_and_judges_may_be_any_text(tmp_path: Path) -> None:
    odd = ("x\ud83dy", "Q\u00b2", "7" * 5000, "\x00", "\u0663")
    answers = [
        {"text_id": t, "question": q, "option": o, "probability": 0.4}
        for t in odd
        for q in odd
        for o in (1, 2)
    ]
    given = [
        {"text_id": t, "question": odd[0], "judge": t, "answer": 1 + n % 2}
        for n, t in enumerate(odd)
    ]
    for name, rows in (("a.jsonl", answers), ("j.jsonl", given)):
        (tmp_path / name).write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )
    table = read_answers(tmp_path / "a.jsonl")
    kept = ("x\ufffdy", *odd[1:])
    assert (table.texts, {scale.question for scale in table.scales}) == (kept, set(kept))
    judged = read_judgments(tmp_path / "j.jsonl", table, main=kept[0])
    assert (set(judged.judgments.judges), judged.judgments.row.tolist()) == (
        set(kept),
        list(range(len(odd))),
    )


def test_judgments_are_joined_by_the_ids_that_the_answers_have(tmp_path: Path) -> None:
    # In the answers apostrophes tell ids apart, and stay; so do those of judgments that by
    # themselves don't show it.
    lines = [f"{text},'=q,{option},0.4" for text in ("'=1", "=1", "'=2") for option in (1, 2)]
    table = read_answers(written(tmp_path, lines))
    assert (table.texts, [scale.question for scale in table.scales]) == (
        ("'=1", "=1", "'=2"),
        ["'=q"],
    )
    given = ["'=2,'=q,'=cy,1", "'=1,'=q,'=cy,2"]
    judged = read_judgments(
        written(tmp_path, given, "j.csv", "text_id,question,judge,answer"), table
    )
    assert (judged.judgments.row.tolist(), judged.judgments.judges, judged.faults) == (
        [2, 0],
        ("=cy",),
        (),
    )


def test_probabilities_that_sum_to_more_than_one_leave_their_answer_out(tmp_path: Path) -> None:
    table = read(tmp_path, "t3,Q1,1,0.5", "t3,Q1,2,0.500002", "t4,Q1,1,0.5", "t4,Q1,2,0.5000005")
    assert [(fault.count, fault.examples) for fault in table.faults] == [
        (1, (f"{tmp_path}/answers.csv:6 (t3, Q1, option 1: 0.5)",)),
        (1, ("t3",)),
    ]
    assert table.texts == ("t1", "t2", "t4")


def test_sums_that_are_read_are_taken_by_calibrators_too_whatever_their_last_bits(
    tmp_path: Path,
) -> None:
    parts = np.random.default_rng(0).multinomial(
        1_000_001, [0.1, 0.2, 0.3, 0.4], 200
    )  # 1.000001 in all, of six decimals
    rows = [
        f"s{text},Q1,{o},{n / 1e6:.6f}"
        for text, row in enumerate(parts)
        for o, n in enumerate(row, 1)
    ]
    table = read_answers(written(tmp_path, rows))
    assert (len(table.texts), table.faults) == (200, ())
    Questionnaire(table.scales, "Q1").checked(table.X)


def test_questions_that_a_fitted_calibrator_does_not_know_are_left_out(tmp_path: Path) -> None:
    known = Questionnaire((Scale("Q1", (1.0, 2.0)), Scale("Q5", (1.0, 2.0, 3.0))), "Q1")
    table = read(tmp_path, "t1,Q7,1,0.5", scales=known.scales)
    assert [
        "whose question the calibrator doesn't know" in fault.what for fault in table.faults
    ] == [True]
    np.testing.assert_array_equal(table.X, [[0.2, 0.7, *[np.nan] * 3], [0.4, 0.6, *[np.nan] * 3]])


def test_an_option_that_has_two_probabilities_makes_the_answer_missing(tmp_path: Path) -> None:
    table = read(tmp_path, "t1,Q1,1,0.3", "t2,Q1,2,0.6")
    second, twice, silent = table.faults
    assert (second.count, second.left_out) == (1, True)
    assert "answers.csv:6 (t1, Q1, option 1: 0.3)" in second.examples[0]
    assert (twice.count, twice.left_out) == (1, False)
    assert silent.examples == ("t1",)
    assert table.texts == ("t2",)


def test_a_table_in_which_nothing_can_be_used_is_refused_with_what_was_wrong(
    tmp_path: Path,
) -> None:
    lacks = r"it has text, answer.*text_id, question, option, probability"
    for lines, header, says in (
        (
            ["t1,Q1,1,-1", "t1,Q1,2,-1"],
            HEADER,
            r"no answer can be used.*2 probabilities below 0.*csv:2",
        ),
        (["a,b"], "text,answer", lacks),
        ([], HEADER, r"answers.csv: a table without a row → give .*text_id"),
        (
            ["t1,Q1"],
            HEADER,
            r"answers.csv: .*can't be read: .*answers.csv:2: 2 cells where the header has 4",
        ),
    ):
        with pytest.raises(BadInput, match=says):
            read_answers(written(tmp_path, lines, header=header))
    (tmp_path / "answers.csv").write_bytes(f"{HEADER}\né,Q1,1,1\n".encode("latin-1"))
    with pytest.raises(
        BadInput, match=r"answers.csv:2: not UTF-8 text: byte 0xe9 → save it as UTF-8$"
    ):
        read_answers(tmp_path / "answers.csv")
    with pytest.raises(WrongUse, match="no question is called 'Q7'") as caught:
        read(tmp_path, options={"Q7": (1, 2)})
    assert "Q1" in caught.value.hint


def test_an_option_without_a_row_has_probability_zero_and_a_question_without_one_is_missing(
    tmp_path: Path,
) -> None:
    table = read(tmp_path, "t3,Q1,2,0.9", "t4,Q2,1,0", "t4,Q2,2,0", "t4,Q10,4,1", "t3,Q10,8,1")
    assert [scale.question for scale in table.scales] == ["Q1", "Q2", "Q10"]
    np.testing.assert_array_equal(table.X[2], [0.0, 0.9, np.nan, np.nan, 0.0, 1.0])
    np.testing.assert_array_equal(table.X[3], [np.nan, np.nan, 0.0, 0.0, 1.0, 0.0])
    assert table.faults == ()


def test_other_columns_are_groups_and_a_text_with_two_values_gets_the_first(tmp_path: Path) -> None:
    lines = ["t1,Q1,1,0.2,a", "t1,Q1,2,0.7,b", "t2,Q1,1,0.4,", "t2,Q1,2,0.6,b"]
    table = read_answers(written(tmp_path, lines, header=f"{HEADER},system"))
    assert table.groups == {"system": ("a", "b")}
    (fault,) = table.faults
    assert (fault.examples, fault.left_out) == (("t1",), False)
    one = written(tmp_path, WHOLE[:2], "one.csv")
    two = written(tmp_path, [f"{line},b" for line in WHOLE[2:]], "two.csv", f"{HEADER},system")
    table = read_answers([one, two])
    np.testing.assert_array_equal(table.X, [[0.2, 0.7], [0.4, 0.6]])
    assert table.groups == {"system": ("", "b")}


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "parquet", "json"])
def test_every_kind_of_file_gives_the_same_table(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"answers.{ending}"
    expected = read(tmp_path)
    rows = [dict(zip(HEADER.split(","), line.split(","), strict=True)) for line in WHOLE]
    typed = [
        row | {"option": int(row["option"]), "probability": float(row["probability"])}
        for row in rows
    ]
    if ending == "tsv":
        path.write_text("\n".join([HEADER, *WHOLE]).replace(",", "\t"), encoding="utf-8")
    elif ending == "json":
        path.write_text(json.dumps(typed), encoding="utf-8")
    else:
        lines = tmp_path / "lines.jsonl"
        lines.write_text("".join(json.dumps(row) + "\n" for row in typed), encoding="utf-8")
        if ending == "parquet":
            duckdb.sql(f"COPY (SELECT * FROM read_json('{lines}')) TO '{path}' (FORMAT parquet)")
        else:
            lines.rename(path)
    table = read_answers(path)
    np.testing.assert_array_equal(table.X, expected.X)
    assert (table.texts, table.scales, table.faults) == (expected.texts, expected.scales, ())


def test_the_authors_table_is_read_as_it_is(tmp_path: Path) -> None:
    header = (
        "text_id\tcriterion\tsample_llm\tanswer1_prob\tanswer2_prob\tanswer3_prob\tanswer4_prob"
    )
    lines = [
        "V1_7\tQ8\t2\t0.1\t0.6\t0.2\t0.0",
        "V1_7\tQ0\t4\t0.1\t0.1\t0.1\t0.7",
        "V2_7\tQ8\t3\t0.0\t0.1\t0.9\t0.0",
        "V2_7\tQ0\t0\t0.0\t0.0\t0.0\t0.0",
    ]
    table = read_answers(written(tmp_path, lines, "their-llm.tsv", header))
    assert table.scales == (
        Scale("Q0", (1.0, 2.0, 3.0, 4.0)),
        Scale("Q8", (1.0, 2.0, 3.0), ordinal=False),
    )
    np.testing.assert_array_equal(
        table.X, [[0.1, 0.1, 0.1, 0.7, 0.1, 0.6, 0.2], [0, 0, 0, 0, 0, 0.1, 0.9]]
    )
    assert table.groups == {"system": ("V1", "V2")}
    assert table.faults == ()


def test_no_two_shapes_recognise_the_same_columns() -> None:
    for shape in TABLE_SHAPES:
        for side, columns in shape.columns.items():
            fields = dict.fromkeys(columns.removesuffix(" …").split(", "), "1")
            assert [other.name for other in TABLE_SHAPES if other.recognises(fields, side)] == [
                shape.name
            ]


def test_simulated_dialogues_are_a_table_of_yes_and_no(tmp_path: Path) -> None:
    rows = [
        {"id": f"DS1-{topic}", "system": "DS1", "messages": [], "quality": {"human": said}}
        for topic, said in (("kettle", "yes"), ("lamp", "no"))
    ]
    path = tmp_path / "dialogues.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    table = read_answers(path)
    assert list(table.texts) == ["DS1-kettle", "DS1-lamp"]
    assert table.X.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert table.groups["system"] == ("DS1", "DS1")
