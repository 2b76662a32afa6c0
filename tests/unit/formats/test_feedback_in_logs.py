"""What stands beside the thumb: words of people, from any shape that tells them, and further signals, never summed."""

from typing import Any

import numpy as np
import pytest

from pollex.conversations.conversation import Conversation, Feedback
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_rows
from pollex.rubrics.worth import signal_in_words, signal_share

TURNS = [{"role": "user", "content": "Friday, please."}, {"role": "assistant", "content": "Booked for Saturday."}]


def only(row: dict[str, Any], **options: Any) -> Conversation:
    return next(iter(read_rows([{"messages": TURNS, **row}], options=ReadOptions(**options))))


@pytest.mark.parametrize(
    ("row", "comment", "tags"),
    [
        ({"thumbs": "down", "comment": " Wrong date. "}, "Wrong date.", ()),
        ({"thumbs": "down", "comments": ["Wrong date.", "Slow."]}, "Wrong date.\nSlow.", ()),
        ({"thumbs": "down", "comment": {"text": "Wrong date."}}, "Wrong date.", ()),
        ({"thumbs": "down", "comment": 7}, "7", ()),
        ({"thumbs": "down", "feedback_tags": ["date", {"label": "slow"}]}, "", ("date", "slow")),
        ({"thumbs": "down", "feedback_tags": "date, slow"}, "", ("date", "slow")),
        ({"feedback": {"rating": "down", "comment": "Wrong date.", "tags": ["date"]}}, "Wrong date.", ("date",)),
    ],
)
def test_comments_and_tags_are_read_from_their_usual_places(
    row: dict[str, Any], comment: str, tags: tuple[str, ...]
) -> None:
    read = only(row)
    assert read.feedback == (Feedback(comment=comment, tags=tags),)
    assert read.label == "negative"


def test_the_user_names_the_field_or_leaves_comments_out() -> None:
    row = {"thumbs": "down", "survey": {"why": "Wrong date."}}
    assert only(row, comment_field="survey.why").feedback == (Feedback(comment="Wrong date."),)
    assert only(row).feedback == ()
    assert only({"thumbs": "down", "comment": "Wrong date."}, comments=False).feedback == ()
    with pytest.raises(BadInput, match="no row has the field of comment_field='survay'"):
        only(row, comment_field="survay")


def test_a_comment_on_a_row_of_a_table_is_of_its_turn() -> None:
    rows = [
        {"conversation_id": "a", "turn": n, "role": one["role"], "text": one["content"]} for n, one in enumerate(TURNS)
    ]
    rows[1] |= {"thumbs": "down", "comment": "Wrong date."}
    assert next(iter(read_rows(rows))).feedback == (Feedback(comment="Wrong date.", turn=1),)


def test_the_label_is_one_and_others_are_kept_apart() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "thumb": "up", "retried": True, "stars": 2},
        {"id": "b", "thumb": "down", "retried": 0, "stars": 5, "used": {"copied": "yes"}},
        {"id": "c", "thumb": "up", "retried": 3, "stars": None},
    ]
    signals = ("retried:down", "stars", "used.copied:up")
    options = ReadOptions(label_field="thumb", signals=signals)
    found = list(read_rows([{"messages": TURNS, **row} for row in rows], options=options))
    assert [one.label.value for one in found] == ["positive", "negative", "positive"]
    assert [one.signals for one in found] == [
        {"retried:down": True, "stars": True},
        {"retried:down": False, "stars": False, "used.copied:up": True},
        {"retried:down": True},
    ]


def test_a_signal_is_told_as_a_ratio_with_its_shares() -> None:
    held = np.arange(50) < 20
    happened = np.isin(np.arange(50), [0, 1, 2, 3, 4, 5, 6, 7, 20, 21, 22, 23, 24, 25])
    told = signal_in_words(signal_share("retried:down", held, happened))
    assert told == "also 2.0 times as many “retried”: 40 % of 20, 20 % of 30 elsewhere"
    assert signal_in_words(signal_share("stars", ~held & held, happened)) == ""
