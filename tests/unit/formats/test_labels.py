"""What a log's thumbs mean."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.conversations.logs import Logs
from pollex.conversations.splits import check_learnable
from pollex.errors import BadInput, BadLabels, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.label_files import read_labels
from pollex.formats.labels import Verdicts
from pollex.formats.read_logs import read_logs

USUAL = Verdicts.of(None, None)
RATED = Verdicts.of(">=4", "<=2")
TURNS = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), "1e999", 10**400, [4, float("nan")]])
def test_nan_and_infinity_are_refused(value: Any) -> None:
    for verdicts in (USUAL, RATED):
        with pytest.raises(BadInput, match="no number"):
            verdicts.label(value)


@pytest.mark.parametrize("value", ["NaN", "maybe", 2, 0.5, "5 stars"])
def test_an_unknown_spelling_says_what_is_known(value: Any) -> None:
    with pytest.raises(BadInput, match=r"unknown label .* → known are up/down"):
        USUAL.label(value)


def test_an_unknown_number_points_to_bounds() -> None:
    with pytest.raises(BadInput, match="positive='>=4', negative='<=2'"):
        USUAL.label(3)


@pytest.mark.parametrize("value", [{"score": 1}, ["up", "down"], ["up"]])
def test_an_object_or_a_list_of_words_is_refused(value: Any) -> None:
    with pytest.raises(BadInput, match="the label is"):
        USUAL.label(value)


def test_words_are_refused_where_ratings_are_compared() -> None:
    with pytest.raises(BadInput, match="isn't a number"):
        RATED.label("up")


@pytest.mark.parametrize(("positive", "negative"), [(">=4", None), (None, "<=2"), (">=x", "<2"), ("up,x", "x,down")])
def test_contradicting_options_are_refused_before_anything_is_read(positive: str | None, negative: str | None) -> None:
    with pytest.raises(WrongUse):
        Verdicts.of(positive, negative)


def test_a_rating_that_matches_both_sides_is_refused() -> None:
    with pytest.raises(WrongUse, match="matches positive and negative"):
        Verdicts.of(">=3", "<=3").label(3)


@pytest.mark.parametrize(
    "value",
    ["up", "Thumbs Up", "thumbs-up", "👍", "👍🏽", "👍️", ":+1:", 1, 1.0, "1", "+1", "1.0", True, "TRUE", " yes "],
)
def test_usual_spellings_of_a_thumb_up_are_known(value: Any) -> None:
    assert USUAL.label(value) is Label.POSITIVE


@pytest.mark.parametrize(
    "value", ["down", "thumbs_down", "👎", "👎🏿", ":-1:", 0, -1, "-1", "0", False, "No", "bad", "Dislike"]
)
def test_usual_spellings_of_a_thumb_down_are_known(value: Any) -> None:
    assert USUAL.label(value) is Label.NEGATIVE


@pytest.mark.parametrize("value", [None, "", "  ", "None", "null", "NA", "n/a", []])
def test_missing_labels_are_no_labels(value: Any) -> None:
    assert USUAL.label(value) is RATED.label(value) is Label.NONE


def test_ratings_are_compared_with_bounds_and_the_middle_has_no_label() -> None:
    labels = [RATED.label(value) for value in (5, "4", 4.0, 3, "2.5", 2, "1")]
    assert labels == [Label.POSITIVE] * 3 + [Label.NONE] * 2 + [Label.NEGATIVE] * 2
    strict = Verdicts.of("> 4", "< 2")
    assert [strict.label(value) for value in (4, 4.1, 2, 1.9)] == ["none", "positive", "none", "negative"]
    equal = Verdicts.of("=5", "==1")
    assert [equal.label(value) for value in (5, 4, 1)] == ["positive", "none", "negative"]


def test_the_mean_of_several_ratings_counts() -> None:
    # (4 + 3 + 4) / 3 = 3.67 and (2 + 3 + 3) / 3 = 2.67; a missing rating is left out, and does not count as 0.
    verdicts = Verdicts.of(">=3.5", "<=2.67")
    values = ([4, 3, 4], [2, 3, 3], [3, 3, 3], [4, None, 3], [None])
    assert [verdicts.label(value) for value in values] == ["positive", "negative", "none", "positive", "none"]


def test_spellings_of_ones_own_replace_the_usual_ones_on_that_side_only() -> None:
    verdicts = Verdicts.of("Solved it, no", None)
    assert [verdicts.label(value) for value in ("solved it", "NO", "down")] == ["positive", "positive", "negative"]
    with pytest.raises(BadInput, match="known are no, solved_it and -1, 0, "):
        verdicts.label("up")


# The field that holds the label


def logs_from(folder: Path, *rows: dict[str, Any], **options: Any) -> Logs:
    path = folder / "log.jsonl"
    lines = (json.dumps({"id": str(number), "messages": TURNS, **row}) for number, row in enumerate(rows))
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_logs([path], options=ReadOptions(**options))


@pytest.mark.parametrize("rows", [[{"thumbs": "up", "label": "up"}], [{"thumbs": "up"}, {"label": "up"}]])
def test_two_possible_label_fields_are_an_error_that_names_both(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="'label' and 'thumbs' → say which: label_field="):
        logs_from(tmp_path, *rows)
    assert logs_from(tmp_path, *rows, label_field="thumbs").counts[Label.POSITIVE] == 1


def test_numbers_in_a_rating_field_are_no_thumbs_and_a_note_says_so(tmp_path: Path) -> None:
    logs = logs_from(tmp_path, {"rating": 1}, {"rating": 5})
    assert logs.counts == {Label.POSITIVE: 0, Label.NEGATIVE: 0, Label.NONE: 2}
    assert any("'rating' holds ratings" in note and "positive=" in note for note in logs.notes)


MIXED = ["up", "👍", 1, "1", True, "thumbs_up", "down", "👎", -1, 0, False]
SEEN: list[tuple[list[Any], tuple[int, int], str]] = [
    (MIXED, (6, 5), ""),
    ([1, -1], (1, 1), ""),
    ([1, 0, None, "unknown", ""], (1, 1), ""),
    ([1, 0, -1], (1, 1), "rating: 0 (1) is neither .* take them: positive='1,0' or negative='-1,0'"),
    (["up", "down", 1, 3, 5], (1, 1), "1 (1), 3 (1), 5 (1) are .* positive='up,5', negative='down,1'"),
    ([1, 1], (0, 0), "1 (2) is .* positive='1'"),
    ([-2, 0, 2], (0, 0), "are .* positive='>=2', negative='<=-2'"),
    ([1, 8, 10], (0, 0), "are .* positive='>=7', negative='<=4'"),
    (["up", {"score": 1}], (1, 0), "an object (1) is .* label_field='rating.NAME'"),
]
"""Values of a field of ratings, how many are up and down, and what is said of the others."""


@pytest.mark.parametrize(("values", "counts", "note"), SEEN)
def test_values_are_taken_together_where_they_are_told_apart_without_doubt(
    values: list[Any], counts: tuple[int, int], note: str, tmp_path: Path
) -> None:
    logs = logs_from(tmp_path, *({"rating": value} for value in values))
    assert (logs.counts[Label.POSITIVE], logs.counts[Label.NEGATIVE]) == counts
    assert [one.label for one in logs].count(Label.NONE) == len(values) - sum(counts)
    told = [one for one in logs.notes if "neither" in one]
    assert len(told) == bool(note)
    assert all(re.search(note.replace("(", r"\(").replace(")", r"\)"), one) for one in told)
    assert sum(logs.account.spellings.values()) == len(values)


@pytest.mark.parametrize("options", [{}, {"label_field": "feedback"}])
def test_one_star_is_no_thumb_up_whatever_its_field_is_called(options: dict[str, Any], tmp_path: Path) -> None:
    logs = logs_from(tmp_path, *({"feedback": stars} for stars in (1, 1, 3, 5)), **options)
    assert logs.counts == {Label.POSITIVE: 0, Label.NEGATIVE: 0, Label.NONE: 4}
    (note,) = logs.notes
    assert note.startswith("'feedback' holds ratings: 1 (2), 3 (1), 5 (1) are neither")
    assert "'>=4'" in note
    assert [one.label for one in logs_from(tmp_path, {"feedback": 1}, {"feedback": 1}, **options)] == ["positive"] * 2


def test_ratings_up_to_two_or_three_have_bounds_that_some_of_them_reach(tmp_path: Path) -> None:
    for top in (2, 3):
        (note,) = logs_from(tmp_path, *({"rating": one} for one in range(1, top + 1))).notes
        assert f"positive='>={top}', negative='<=1'" in note


def test_the_options_that_a_note_gives_take_what_was_left(tmp_path: Path) -> None:
    rows = [{"rating": value} for value in ("up", "down", 1, 3, 5)]
    logs = logs_from(tmp_path, *rows, positive="up,5", negative="down,1")
    assert (logs.counts[Label.POSITIVE], logs.counts[Label.NEGATIVE]) == (2, 2)
    assert any("3 (1) is neither" in note and "positive='up,5,3' or" in note for note in logs.notes)
    zeros = logs_from(tmp_path, *({"rating": value} for value in (1, 0, -1)), negative="-1,0")
    assert (zeros.counts[Label.NEGATIVE], zeros.notes) == (2, ("labels come from the field 'rating'",))


def test_a_rating_that_is_no_thumb_makes_no_two_conversations_of_one_id(tmp_path: Path) -> None:
    rows = [{"id": "a", "rating": 1}, {"id": "a", "rating": 5}, {"id": "b", "rating": 0}]
    assert logs_from(tmp_path, *rows).duplicates == 1
    with pytest.raises(BadInput, match="different conversations"):
        logs_from(tmp_path, {"id": "a", "rating": 1}, {"id": "a", "rating": -1})


def test_a_file_of_labels_tells_which_ratings_are_none(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"id": "a", "rating": 1}\n{"id": "b", "rating": -1}')
    assert [one.label for one in read_labels(path, ReadOptions())[0]] == ["positive", "negative"]
    path.write_text('{"id": "a", "rating": 1}\n{"id": "b", "rating": 3}')
    with pytest.raises(BadInput, match="2 rows can't be read"):
        read_labels(path, ReadOptions())


def test_ratings_are_the_label_where_bounds_are_given_and_thumbs_where_not(tmp_path: Path) -> None:
    rows = [{"thumbs": "up", "ratings": [1, 2]}, {"thumbs": None, "ratings": [5, 5]}]
    assert [c.label for c in logs_from(tmp_path, *rows)] == ["positive", "none"]
    assert [c.label for c in logs_from(tmp_path, *rows, positive=">=4", negative="<=2")] == ["negative", "positive"]


def test_words_in_a_rating_field_are_read(tmp_path: Path) -> None:
    assert logs_from(tmp_path, {"rating": "👍"}).counts[Label.POSITIVE] == 1


def test_the_field_that_labels_come_from_is_noted(tmp_path: Path) -> None:
    assert logs_from(tmp_path, {"vote": "down"}).notes == ("labels come from the field 'vote'",)


def test_columns_named_like_feedback_are_told_while_there_is_no_label_field(tmp_path: Path) -> None:
    rows = [{"user_rating": "up", "metadata": {"csat": 5}}, {"user_rating": "down", "feedback_id": 7}]
    (note,) = logs_from(tmp_path, *rows).notes
    assert "named like feedback: 'user_rating' (2), 'metadata.csat' (1); to use one: label_field='user_rating'" in note
    assert logs_from(tmp_path, *rows, label_field="user_rating").counts[Label.NEGATIVE] == 1
    assert not logs_from(tmp_path, *({"thumbs": "up"} | row for row in rows[1:])).notes[1:]
    assert logs_from(tmp_path, *rows, labels_needed=False).notes == ()


def test_an_unknown_label_is_a_bad_row_and_its_conversation_is_not_imported(tmp_path: Path) -> None:
    logs = logs_from(tmp_path, {"thumbs": "sideways"}, {"thumbs": "up"}, max_bad=1)
    assert [c.id for c in logs] == ["1"]
    assert (logs.bad_rows[0].line, logs.bad_rows[0].reason) == (1, "unknown label 'sideways'")


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"feedback.score": None, "feedback": {"score": "up"}}, Label.POSITIVE),
        ({"feedback.score": "down", "feedback": {"score": None}}, Label.NEGATIVE),
        ({"feedback.score": "down", "feedback": {"score": "up"}}, Label.NEGATIVE),
        ({"feedback.score": None, "feedback": {}}, Label.NONE),
    ],
)
def test_a_blank_under_a_paths_own_name_hides_nothing_at_its_end(
    tmp_path: Path, fields: dict[str, Any], label: Label
) -> None:
    other = {"feedback.score": "up" if label is Label.NEGATIVE else "down"}
    assert logs_from(tmp_path, fields, other, label_field="feedback.score").counts[label] == 1


def test_a_field_that_no_row_has_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="label_field='tumbs'"):
        logs_from(tmp_path, {"thumbs": "up"}, label_field="tumbs")


DIFFER: list[list[dict[str, Any]]] = [
    [{"id": "a", "messages": TURNS, "thumbs": thumbs} for thumbs in ("up", "down", "up")],
    [{"id": "a", "role": "user", "text": "Hi", "thumbs": "up"}, {"id": "a", "role": "bot", "text": "Yo", "thumbs": 0}],
    [
        {"id": "b", "chat_id": "a", "messages": TURNS[:1], "thumbs": "up"},
        {"id": "a", "chat_id": "a", "messages": TURNS, "thumbs": "down"},
    ],
]
"""One conversation with two labels: in rows of one id, in the rows of its turns, and at two moments of it."""


@pytest.mark.parametrize("rows", DIFFER)
def test_labels_that_differ_stop_nothing_that_needs_none(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.raises(BadInput, match="differ"):
        read_logs(path)
    (one,) = read_logs(path, options=ReadOptions(labels_needed=False))
    assert (one.id, one.label, len(one.turns)) == ("a", Label.NONE, 2)


# Whether labels are enough


def labelled(label: Label, count: int, content: str = "x") -> list[Conversation]:
    turns = (Turn(role="user", content=content), Turn(role="assistant", content=content))
    return [Conversation(id=f"{label}{n}", turns=turns, label=label) for n in range(count)]


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        (0, 0, "no conversation has a label: 0 positive, 0 negative, 3 without a label → say where"),
        (12, 0, "all labels are positive: 12 positive, 0 negative"),
        (0, 1, "all labels are negative: 0 positive, 1 negative"),
        (12, 9, "fewer than 10 conversations of a class: 12 positive, 9 negative"),
    ],
)
def test_too_few_labels_are_an_error_with_counts(good: int, bad: int, message: str) -> None:
    log = [*labelled(Label.POSITIVE, good), *labelled(Label.NEGATIVE, bad), *labelled(Label.NONE, 3)]
    with pytest.raises(BadLabels, match=message):
        check_learnable(log)


def test_conversations_without_words_do_not_count_as_labelled() -> None:
    log = [*labelled(Label.POSITIVE, 10), *labelled(Label.NEGATIVE, 10, content=" ")]
    said = r"of conversations that can be scored are positive: 10 .* 10 that can't be scored \(10 with a label\)"
    with pytest.raises(BadLabels, match=said):
        check_learnable(log)


def test_labels_that_stand_on_empty_conversations_are_not_said_to_be_missing() -> None:
    log = [*labelled(Label.POSITIVE, 10, content=""), *labelled(Label.NEGATIVE, 10, content=" ")]
    with pytest.raises(BadLabels, match=r"no conversation with a label can be scored.*words of a user") as refused:
        check_learnable(log)
    assert "label_field" not in str(refused.value)


def test_ten_of_each_class_are_enough() -> None:
    check_learnable(labelled(Label.POSITIVE, 10) + labelled(Label.NEGATIVE, 10))
    check_learnable(labelled(Label.POSITIVE, 2) + labelled(Label.NEGATIVE, 3), minimum=2)
