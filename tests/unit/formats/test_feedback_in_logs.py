"""What people wrote with their thumb, from rows, tables and exports, in any shape that tells words."""

from typing import Any

import pytest

from pollex.conversations.conversation import Conversation, Feedback
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_rows

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
