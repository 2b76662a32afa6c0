"""What people wrote with their thumb, from rows, tables and exports, in any shape that tells words."""

import json
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.conversation import Conversation, Feedback
from pollex.errors import BadInput
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs, read_rows

TURNS = [{"role": "user", "content": "Friday, please."}, {"role": "assistant", "content": "Booked for Saturday."}]
RUN = {
    "id": "r",
    "run_type": "chain",
    "trace_id": "r",
    "extra": {"metadata": {"thread_id": "a"}},
    "inputs": {"messages": TURNS[:1]},
    "outputs": {"output": TURNS[1]},
}


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


def test_an_odd_comment_is_told_with_file_and_line_and_costs_no_row(tmp_path: Path) -> None:
    odd: list[Any] = [{"a": {"b": 1}}, [[True]], True]
    rows = [{"id": str(n), "messages": TURNS, "thumbs": "up", "comment": one} for n, one in enumerate(odd)]
    rows.append({"id": "t", "messages": TURNS, "thumbs": "up", "feedback_tags": [True]})
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    logs = read_logs(path)
    assert (len(logs), logs.bad_rows) == (4, ())
    assert next(iter(logs)).feedback[0].comment == '{"a": {"b": 1}}'
    what = "a comment is neither text nor an object with text, and is kept as JSON"
    assert f"{what}: {path}:1, {path}:2, {path}:3" in logs.notes
    assert f"tags of a comment are no list of texts, and are kept as JSON: {path}:4" in logs.notes


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


def test_a_comment_of_an_export_has_author_time_and_turn_also_without_a_thumb(tmp_path: Path) -> None:
    said = {"run_id": "r", "feedback_source": {"type": "app", "user_id": "ann"}, "created_at": "2026-01-01T00:00:00Z"}
    rows = [RUN, {**said, "key": "user_feedback", "score": 0, "comment": "Wrong date."}]
    rows.append({**said, "key": "note", "score": None, "comment": "Saw it too late."})
    rows.append({**said, "key": "why", "value": "It was Saturday.", "score": None})
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    conversation = next(iter(read_logs(path, options=ReadOptions(comment_field="why"))))
    assert conversation.label == "negative"
    assert [(one.comment, one.author, one.turn) for one in conversation.feedback] == [
        ("Wrong date.", "ann", 1),
        ("Saw it too late.", "ann", 1),
        ("It was Saturday.", "ann", 1),
    ]
    assert conversation.feedback[0].time == 1767225600
