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
