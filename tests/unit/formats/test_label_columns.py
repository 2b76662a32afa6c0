"""Labels of unknown logs: known by their values and by where they stand, in many languages; asked for where unclear."""

from typing import Any

import pytest

from pollex.conversations.conversation import Label
from pollex.errors import BadInput, PollexError
from pollex.formats.columns import Column
from pollex.formats.fields import ReadOptions
from pollex.formats.inference import estimate_role_likelihood
from pollex.formats.label_columns import (
    estimate_label_likelihood,
    infer_thumb_sides_of_column_values,
    is_ambiguous_label_column,
    rank_label_columns,
)
from pollex.formats.labels import infer_thumb_side
from pollex.formats.mapping import parse_name_pairs
from pollex.formats.proposal import UnmappedLog
from pollex.formats.read_logs import read_logs_from_rows

TALKS = [
    ("Where is my tent, please? Order 7.", "It is late, I am afraid."),
    ("Can I return the boots?", "Within two weeks, yes."),
    ("Do you open on Sunday?", "No, we are closed then."),
    ("My lamp came without a bulb.", "I send you a new one today."),
    ("Is the stove safe in a tent?", "No, please use it outside."),
    ("How long is the red rope?", "It is thirty metres long."),
]


def rows_of_turns(labels: list[Any], column: str, **names: str) -> list[dict[str, Any]]:
    """Return a row a turn; the label stands at the last turn of a conversation."""
    rows = []
    for number, (question, answer) in enumerate(TALKS):
        for speaker, words in (("kunde", question), ("bot", answer)):
            row = {"vorgang": f"v{number}", "wer": speaker, "was": words, column: None}
            rows.append({names.get(name, name): value for name, value in row.items()})
        rows[-1][column] = labels[number]
    return rows


def as_proposed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    with pytest.raises(UnmappedLog, match="begins so") as error:
        read_logs_from_rows(rows, options=ReadOptions(confirm=True))
    options: dict[str, Any] = dict(error.value.options)
    return options | {
        name: parse_name_pairs(options[name]) for name in ("columns", "roles") if name in options
    }


def labels_read(rows: list[dict[str, Any]], options: dict[str, Any]) -> list[str]:
    signs = {Label.POSITIVE: "+", Label.NEGATIVE: "-", Label.NONE: "0"}
    return [signs[one.label] for one in read_logs_from_rows(rows, options=ReadOptions(**options))]


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        ("zadowolenie", ["tak", "nie", "tak", "nie", None, "tak"]),
        ("memnuniyet", ["evet", "hayır", "evet", "hayır", "", "evet"]),
        ("nöjd", ["bra", "dåligt", "bra", "dåligt", None, "bra"]),
        ("評価", ["良い", "悪い", "良い", "悪い", "未評価", "良い"]),
        ("满意度", ["满意", "不满意", "满意", "不满意", "未评价", "满意"]),
        ("оценка", ["хорошо", "плохо", "хорошо", "плохо", None, "хорошо"]),
        ("bewertung", ["hilfreich", "nicht hilfreich"] * 2 + ["teilweise", "hilfreich"]),
        ("Did it help you?", ["😀 Yes", "😡 No", "😀 Yes", "😡 No", "😐 Partly", "😀 Yes"]),
        ("happiness", ["100 %", "0 %", "80 %", "20 %", None, "100 %"]),
        ("x7", ["solved", "not solved", "solved", "not solved", None, "solved"]),
        ("x7", ["5/5", "1/5", "4/5", "2/5", "3/5", "5/5"]),
    ],
)
def test_a_label_is_proposed_by_its_values_in_many_languages(
    column: str, labels: list[Any]
) -> None:
    rows = rows_of_turns(labels, column)
    assert labels_read(rows, as_proposed(rows)) == ["+", "-", "+", "-", "0", "+"]


def test_codes_that_may_mean_either_side_are_asked_for_and_never_guessed() -> None:
    rows = rows_of_turns([1, 2, 1, 2, 0, 1], "feedback")
    options = as_proposed(rows)
    assert dict(options["columns"])["label"] == "feedback"
    with pytest.raises(PollexError, match=r"1 \(3\), 2 \(2\).*positive"):
        read_logs_from_rows(rows, options=ReadOptions(**options))
    told = options | {"positive": "1", "negative": "2"}
    assert labels_read(rows, told) == ["+", "-", "+", "-", "0", "+"]


def test_a_named_label_without_one_thumb_says_which_values_there_are() -> None:
    rows = rows_of_turns(["4/5", "2/5", "5/5", "1/5", None, "3/5"], "puan")
    options = as_proposed(rows)
    bare = {name: options[name] for name in ("columns", "roles")}
    with pytest.raises(BadInput, match=r"4 \(1\).*positive='>=4'"):
        read_logs_from_rows(rows, options=ReadOptions(**bare))


def test_what_a_machine_says_of_each_turn_of_a_user_is_no_label() -> None:
    rows = rows_of_turns([None] * 6, "stimmung")
    for row in rows:
        guess = "good" if "?" in row["was"] else "bad"
        row["stimmung"] = guess if row["wer"] == "kunde" else None
    more = [{**row, "was": f"{row['was']} Really?"} for row in rows]
    options = as_proposed([*rows, *more])
    assert "label" not in dict(options["columns"])


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("sentiment", ["positive", "negative"] * 5),
        ("contained", [True, False] * 5),
        ("plan", ["Gold", "Silver"] * 5),
        ("age", [3, 4] * 5),
        ("survey.answered", [True] * 10),
        ("Lead Score", [12, 88, 40, 67, 93] * 2),
    ],
)
def test_columns_that_people_never_rate_with_are_no_labels(column: str, values: list[Any]) -> None:
    found = Column(column, values)
    assert estimate_label_likelihood(found) == 0
    assert not is_ambiguous_label_column(found)


def test_of_two_values_one_that_is_known_tells_the_other_where_the_name_says_label() -> None:
    assert infer_thumb_sides_of_column_values(Column("urteil", ["gut", "geht so"] * 3)) == {
        "positive": "gut",
        "negative": "geht so",
    }
    assert infer_thumb_sides_of_column_values(Column("farbe", ["gut", "geht so"] * 3)) is None


@pytest.mark.parametrize(
    ("word", "side"),
    [
        ("not helpful", Label.NEGATIVE),
        ("No, not resolved", Label.NEGATIVE),
        ("pas satisfait", Label.NEGATIVE),
        ("Good, thanks", Label.POSITIVE),
        ("not rated", Label.NONE),
        ("Ni satisfecho ni insatisfecho", Label.NONE),
        ("weder zufrieden noch unzufrieden", Label.NONE),
        ("né soddisfatto né insoddisfatto", Label.NONE),
        ("Non espressa", Label.NONE),
        ("Non renseignée", Label.NONE),
        ("not provided", Label.NONE),
        ("Arriba", Label.POSITIVE),
        ("vers le bas", Label.NEGATIVE),
        ("not bad", None),
        ("eyes (1)", None),
    ],
)
def test_negations_and_words_around_a_thumb_are_understood(word: str, side: Label | None) -> None:
    assert infer_thumb_side(word) is side


def test_an_id_in_the_first_row_of_each_block_holds_for_the_rows_below() -> None:
    rows = rows_of_turns(["up", "down", "up", "down", None, "up"], "note")
    for place, row in enumerate(rows):
        row["vorgang"] = row["vorgang"] if place % 2 == 0 else ""
    options = as_proposed(rows)
    assert dict(options["columns"])["fill"] == "vorgang"
    assert labels_read(rows, options) == ["+", "-", "+", "-", "0", "+"]


def test_which_answer_was_chosen_is_no_name_of_a_speaker() -> None:
    column = Column("selected", [True, False, True, True, False, True])
    assert estimate_role_likelihood(column) == 0


def test_a_name_that_ends_as_id_does_is_no_id() -> None:
    assert estimate_label_likelihood(Column("tevredenheid", ["tevreden", "ontevreden"] * 3)) > 1
    for name in ("ratingId", "ratingid", "rating_id", "feedbackType"):
        assert not estimate_label_likelihood(Column(name, ["good", "bad"] * 3)), name


def test_of_school_grades_the_lowest_is_the_best() -> None:
    sides = infer_thumb_sides_of_column_values(Column("Schulnote", [1, 2, 5, 6, 3]))
    assert sides == {"positive": "<=2", "negative": ">=5"}


def test_of_several_columns_the_label_is_the_one_whose_name_says_most() -> None:
    answered = Column("encuesta.respondida", [True, True, False, True, True])
    scale = ["Muy satisfecho", "Insatisfecho", None, "Satisfecho", "Muy insatisfecho"]
    asked = Column("encuesta.satisfaccion", scale)
    number = Column("Match score", [12, 88, 40, 67, 93])
    stars = Column("CSAT score (1-5)", [1, 5, 2, 4, 3])
    assert next(rank_label_columns([answered, asked]))[0] is asked
    assert next(rank_label_columns([number, stars]))[0] is stars
