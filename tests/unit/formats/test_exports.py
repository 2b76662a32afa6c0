"""Export formats of other tools, by one contract for all and by what may go wrong without a word."""

import json
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.conversation import Label
from pollex.conversations.logs import Logs
from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.log_shapes.tools import EXPORTS, Export, export_of, nearest
from pollex.formats.read_logs import read_logs

EXAMPLES = json.loads(Path(__file__).with_name("examples.json").read_text("utf-8"))
"""Rows that make one conversation, labelled positive, with the turns “Hello” and “Good day”, by name."""

with_example = pytest.mark.parametrize("export", [e for e in EXPORTS if e.name in EXAMPLES], ids=lambda e: e.name)
every = pytest.mark.parametrize("export", EXPORTS, ids=lambda e: e.name)


def logs_from(folder: Path, *rows: Any, **options: Any) -> Logs:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_logs(path, options=ReadOptions(**options))


def said(logs: Logs) -> list[list[tuple[str, str]]]:
    return [[(turn.role, turn.content) for turn in conversation.turns] for conversation in logs]


@with_example
def test_an_export_makes_one_labelled_conversation_of_its_example(export: Export, tmp_path: Path) -> None:
    logs = logs_from(tmp_path, *EXAMPLES[export.name], pairs=True)
    assert said(logs)[0] == [("user", "Hello"), ("assistant", "Good day")]
    assert logs.conversations[0].label is Label.POSITIVE
    assert export.name in logs.account.formats


@with_example
def test_an_example_is_told_by_its_keys_whatever_order_they_stand_in(export: Export) -> None:
    assert export_of(dict(reversed(EXAMPLES[export.name][0].items()))) is export


@every
def test_an_export_refuses_rather_than_crashes_when_fields_are_of_the_wrong_kind(export: Export) -> None:
    keys = {key.split(".")[0] for sign in export.signs for key in sign} | {*export.more.split()}
    wrongs: tuple[Any, ...] = (7, True, [1], [[]], {"a": {}}, [{"role": []}], "[", '["x"]', [None], None, "x", 0.5)
    for wrong in wrongs:
        row = dict.fromkeys(keys, wrong)
        try:
            list(export.read(row))
        except BadInput as error:
            assert error.remedy  # noqa: PT017


@with_example
def test_keys_may_be_spelled_in_another_case(export: Export, tmp_path: Path) -> None:
    signs = {key.split(".")[0] for sign in export.signs for key in sign}
    rows = [
        {key.upper() if key in signs else key: value for key, value in row.items()} for row in EXAMPLES[export.name]
    ]
    try:
        assert said(logs_from(tmp_path, *rows, pairs=True))[0] == [("user", "Hello"), ("assistant", "Good day")]
    except BadInput as error:
        assert error.remedy  # noqa: PT017


# Wrong without a word


def test_results_of_tools_in_a_users_message_are_the_tools_words_and_thoughts_are_nobodys(tmp_path: Path) -> None:
    row = {
        "id": "a",
        "system": "You sell bicycles.",
        "messages": [
            {"role": "user", "content": "Where is A-17?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "tool_use", "name": "look_up", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "content": "shipped"}, {"type": "text", "text": "Well?"}],
            },
        ],
    }
    assert said(logs_from(tmp_path, row)) == [
        [
            ("system", "You sell bicycles."),
            *(
                ("user", "Where is A-17?"),
                ("assistant", "[tool call: look_up]"),
                ("tool", "shipped"),
                ("user", "Well?"),
            ),
        ]
    ]


def run(**fields: Any) -> dict[str, Any]:
    words = {"inputs": {"input": "Hello"}, "outputs": {"output": "Good day"}}
    return {"id": "r", "trace_id": "r", "run_type": "chain", **words, **fields}


def feedback(**fields: Any) -> dict[str, Any]:
    return {"run_id": "r", "key": "user_score", "value": None, "feedback_source": {"type": "api"}, **fields}


def test_the_feedback_of_a_judge_is_no_thumb_even_if_it_is_the_only_one(tmp_path: Path) -> None:
    judged = feedback(score=1, feedback_source={"type": "model"})
    logs = logs_from(tmp_path, run(), judged)
    assert logs.conversations[0].label is Label.NONE
    assert any("1 'user_score' from model" in note for note in logs.notes)


def test_rows_of_feedback_count_more_than_their_means(tmp_path: Path) -> None:
    logs = logs_from(tmp_path, run(feedback_stats={"user_score": {"n": 1, "avg": 1.0}}), feedback(score=0))
    assert logs.conversations[0].label is Label.NEGATIVE


def test_feedback_of_an_inner_run_counts_for_its_trace(tmp_path: Path) -> None:
    logs = logs_from(tmp_path, run(), feedback(run_id="inner", trace_id="r", score=True))
    assert logs.conversations[0].label is Label.POSITIVE


def librechat(*messages: tuple[str, str | None, bool, str, str | None]) -> dict[str, Any]:
    rows = []
    for number, (key, parent, user, text, rating) in enumerate(messages):
        row = {"messageId": key, "parentMessageId": parent, "isCreatedByUser": user, "text": text, "createdAt": number}
        rows.append(row | ({"feedback": {"rating": rating}} if rating else {}))
    return {"conversationId": "a", "messages": rows}


def test_of_a_regenerated_answer_only_the_try_that_was_gone_on_with_is_read(tmp_path: Path) -> None:
    chat = librechat(
        ("1", None, True, "Hello", None),
        ("2", "1", False, "Go away", None),
        ("3", "1", False, "Good day", "thumbsUp"),
        ("4", "3", True, "Thanks", None),
    )
    logs = logs_from(tmp_path, chat)
    assert said(logs) == [[("user", "Hello"), ("assistant", "Good day"), ("user", "Thanks")]]
    assert logs.conversations[0].label is Label.POSITIVE


def test_a_thumb_on_an_answer_that_was_replaced_is_counted_and_no_label(tmp_path: Path) -> None:
    chat = librechat(
        ("1", None, True, "Hello", None),
        ("2", "1", False, "Go away", "thumbsDown"),
        ("3", "1", False, "Good day", "thumbsUp"),
    )
    logs = logs_from(tmp_path, chat)
    assert (len(logs), logs.conversations[0].label) == (1, Label.POSITIVE)
    assert any("1 thumb was given for answers that were replaced" in note for note in logs.notes)


def test_a_page_of_messages_is_one_conversation(tmp_path: Path) -> None:
    messages = [
        {"id": "m-0", "role": "user", "content": "Hello"},
        {"id": "m-1", "role": "assistant", "content": "Good day"},
    ]
    (tmp_path / "page.json").write_text(json.dumps({"object": "list", "data": messages, "has_more": True}))
    logs = read_logs(tmp_path / "page.json")
    assert said(logs) == [[("user", "Hello"), ("assistant", "Good day")]]
    assert any("a page of many" in note for note in logs.notes)
    (tmp_path / "list.json").write_text(json.dumps(messages))
    assert said(read_logs(tmp_path / "list.json")) == said(logs)


def test_downloads_that_lost_thumbs_and_sessions_are_refused_with_the_one_that_has_them(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="neither thumbs nor sessions → export the spans"):
        logs_from(tmp_path, {"messages": [{"role": "user", "content": "Hello"}], "tools": []})
    with pytest.raises(BadInput, match="no thumbs → export the conversation as JSON"):
        logs_from(
            tmp_path, {"sender": "User", "text": "x", "isCreatedByUser": "True", "messageId": 1, "parentMessageId": 0}
        )


# Which score is the thumb


def test_several_names_that_may_be_the_thumb_are_listed_with_counts(tmp_path: Path) -> None:
    rows = [run(), feedback(score=1), feedback(key="thumbs", score=0)]
    with pytest.raises(WrongUse, match=r"'user_score' \(1\), 'thumbs' \(1\) → say which: label_field='user_score'"):
        logs_from(tmp_path, *rows)
    assert logs_from(tmp_path, *rows, label_field="thumbs").conversations[0].label is Label.NEGATIVE


def test_scores_that_pollex_wrote_back_are_never_thumbs(tmp_path: Path) -> None:
    logs = logs_from(tmp_path, run(), feedback(key="pollex_label", score=1), feedback(key="pollex.netsat", score=9))
    assert logs.conversations[0].label is Label.NONE


def test_ratings_from_one_to_five_are_refused_without_bounds_and_the_error_proposes_them(tmp_path: Path) -> None:
    rows = [run(), feedback(key="csat", score=5)]
    with pytest.raises(
        WrongUse, match=r"'csat' are ratings, for example 5 → give bounds: positive='>=4', negative='<=2'"
    ):
        logs_from(tmp_path, *rows)
    assert logs_from(tmp_path, *rows, positive=">=4", negative="<=2").conversations[0].label is Label.POSITIVE


def test_bad_rows_are_told_where_scores_find_no_words(tmp_path: Path) -> None:
    score = {"name": "user-feedback", "source": "API", "dataType": "BOOLEAN", "value": 1, "traceId": "t"}
    (tmp_path / "scores.jsonl").write_text(json.dumps(score) + "\n" + json.dumps({"said": "Hello"}) + "\n")
    with pytest.raises(BadInput, match=r"scores and no words, and 1 row is bad:\n.*scores.jsonl:2: no known shape"):
        read_logs(tmp_path / "scores.jsonl")


@pytest.mark.parametrize("odd", [10**400, 1e400, "--5", "²"], ids=["long", "infinite", "signs", "superscript"])
def test_numbers_that_are_none_end_in_conversations_or_in_words(odd: object, tmp_path: Path) -> None:
    value = {"kvlistValue": {"values": [{"key": "content", "value": {"intValue": odd}}]}}
    record = {"eventName": "gen_ai.user.message", "traceId": "a" * 32, "spanId": "b" * 16, "timeUnixNano": odd}
    score = {"name": "feedback", "source": "API", "dataType": "NUMERIC", "value": odd, "traceId": "t", "timestamp": odd}
    message = {"message_tree_id": "a", "message_id": "m", "role": "prompter", "text": "Hello", "rank": odd}
    rows: list[dict[str, Any]] = [
        {"resourceLogs": [{"scopeLogs": [{"logRecords": [record | {"body": value}]}]}]},
        score,
        message | {"emojis": {"name": ["+1"], "count": [odd]}},
        {"instruction": "Hello", "completions": [{"response": "a", "overall_score": odd}, {"response": "b"}]},
        {"conversation_id": "a", "role": "user", "content": "Hello", "turn": odd},
    ]
    for row in rows:
        (tmp_path / "log.jsonl").write_text(json.dumps(row) + "\n")
        try:
            assert len(read_logs(tmp_path / "log.jsonl", options=ReadOptions(max_bad=1, pairs=True))) > 0
        except (BadInput, WrongUse) as error:
            assert error.what  # noqa: PT017


def test_epochs_of_a_sample_are_one_group(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]
    samples = [{"id": "a", "epoch": n, "messages": said, "scores": {}} for n in (1, 2)]
    scout = [
        {"transcript_id": f"t{n}", "task_id": "b", "task_repeat": n, "messages": said, "success": True} for n in (1, 2)
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (*samples, *scout)))
    assert [talk.group for talk in read_logs(tmp_path / "log.jsonl")] == ["a", "a", "b", "b"]


def test_an_answer_of_mlflow_that_is_null_is_none(tmp_path: Path) -> None:
    attributes = {"mlflow.spanInputs": '{"question": "Hello"}', "mlflow.spanOutputs": "null"}
    span = {"span_id": "s", "attributes": attributes, "status": {"code": "STATUS_CODE_ERROR", "message": "overloaded"}}
    row = {"info": {"trace_id": "t", "trace_metadata": {}}, "data": {"spans": [span]}}
    (tmp_path / "traces.jsonl").write_text(json.dumps(row) + "\n")
    (talk,) = read_logs(tmp_path / "traces.jsonl")
    assert [turn.content for turn in talk.turns] == ["Hello", "[error]"]


def test_thumbs_without_words_and_thumbs_of_other_conversations_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="the files have scores and no words → give the conversations' file, too"):
        logs_from(tmp_path, feedback(score=1))
    with pytest.raises(BadInput, match="1 thumb belongs to conversations that aren't in these files"):
        logs_from(tmp_path, run(), feedback(run_id="other", score=1))
    logs = logs_from(tmp_path, run(), feedback(score=1), feedback(run_id="other", score=1))
    assert any("1 thumb belongs to conversations that aren't in these files" in note for note in logs.notes)


# Several thumbs

CHAT = librechat(
    ("1", None, True, "Hello", None),
    ("2", "1", False, "Good day", "thumbsUp"),
    ("3", "2", True, "Help me", None),
    ("4", "3", False, "No", "thumbsDown"),
)


def test_thumbs_that_differ_are_a_bad_row_that_says_what_can_be_chosen(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"2 thumbs that differ: 1 up, 1 down → say which counts: last, worst.*: thumbs='last'"
    ):
        logs_from(tmp_path, CHAT)
    for how in ("last", "worst"):
        assert logs_from(tmp_path, CHAT, thumbs=how).conversations[0].label is Label.NEGATIVE


def test_each_thumb_may_be_a_conversation_that_ends_with_its_answer(tmp_path: Path) -> None:
    logs = logs_from(tmp_path, CHAT, thumbs="each")
    assert [(c.id, c.label, c.group, len(c.turns)) for c in logs] == [
        ("a#2", Label.POSITIVE, "a", 2),
        ("a#4", Label.NEGATIVE, "a", 4),
    ]


def test_a_conversation_that_goes_on_long_after_its_thumb_is_counted(tmp_path: Path) -> None:
    turns = [
        (str(n), str(n - 1) if n > 1 else None, n % 2 == 1, f"line {n}", "thumbsUp" if n == 2 else None)
        for n in range(1, 7)
    ]
    logs = logs_from(tmp_path, librechat(*turns))
    assert any("1 conversation goes on for more than 2 turns after the thumb" in note for note in logs.notes)


# Sessions


def traced(number: int, asked: Any, answered: Any, **fields: Any) -> dict[str, Any]:
    thread = {"metadata": {"thread_id": "a"}}
    return run(
        id=f"r{number}",
        trace_id=f"r{number}",
        inputs=asked,
        outputs=answered,
        start_time=f"2026-01-0{number}",
        extra=thread,
        **fields,
    )


def history(*lines: str) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[n % 2], "content": line} for n, line in enumerate(lines)]}


def answer(line: str) -> dict[str, Any]:
    return {"role": "assistant", "content": line}


def words(logs: Logs) -> list[str]:
    (conversation,) = logs
    return [turn.content for turn in conversation.turns]


def test_histories_that_repeat_each_other_are_one_conversation(tmp_path: Path) -> None:
    rows = [traced(1, history("a"), answer("b")), traced(2, history("a", "b", "c"), answer("d"))]
    assert words(logs_from(tmp_path, *rows)) == ["a", "b", "c", "d"]
    assert words(logs_from(tmp_path, *reversed(rows))) == ["a", "b", "c", "d"]


def test_a_history_that_was_cut_at_its_beginning_is_joined_where_it_overlaps(tmp_path: Path) -> None:
    rows = [
        traced(1, history("a"), answer("b")),
        traced(2, history("a", "b", "c"), answer("d")),
        traced(3, history("c", "d", "e"), answer("f")),
    ]
    assert words(logs_from(tmp_path, *rows)) == ["a", "b", "c", "d", "e", "f"]


def test_an_edited_turn_replaces_what_stood_there_before(tmp_path: Path) -> None:
    rows = [
        traced(1, history("a"), answer("b")),
        traced(2, history("a", "b", "c"), answer("d"), feedback_stats={"thumbs": {"avg": 0}}),
        traced(3, history("a", "b", "x"), answer("y")),
    ]
    logs = logs_from(tmp_path, *rows)
    assert words(logs) == ["a", "b", "x", "y"]
    assert logs.conversations[0].label is Label.NONE
    assert any("1 thumb was given for answers that were replaced" in note for note in logs.notes)


def test_a_call_that_invents_a_title_is_no_turn(tmp_path: Path) -> None:
    rows = [
        traced(1, history("a"), answer("b")),
        traced(2, history("Give this chat a title: a"), answer("Letters")),
        traced(3, history("a", "b", "c"), answer("d")),
    ]
    assert words(logs_from(tmp_path, *rows)) == ["a", "b", "c", "d"]


def test_traces_that_contradict_each_other_are_a_bad_row(tmp_path: Path) -> None:
    rows = [
        traced(1, history("a"), answer("b")),
        traced(2, history("a", "b", "c"), answer("d")),
        traced(3, history("p", "q", "r"), answer("s")),
    ]
    with pytest.raises(BadInput, match="session a: its traces contradict each other → give each conversation"):
        logs_from(tmp_path, *rows)


def test_the_same_words_may_be_said_twice(tmp_path: Path) -> None:
    rows = [traced(1, {"input": "Hello"}, {"output": "Hi"}), traced(2, {"input": "Hello"}, {"output": "Hi again"})]
    assert words(logs_from(tmp_path, *rows)) == ["Hello", "Hi", "Hello", "Hi again"]


# Errors


def test_a_row_that_lacks_a_formats_key_is_told_the_nearest_format(tmp_path: Path) -> None:
    row = {"name": "user-feedback", "source": "API", "dataType": "BOOLEAN", "value": 1}
    assert nearest(row).startswith("it looks like Langfuse scores, but has no ")
    with pytest.raises(BadInput, match="it looks like Langfuse scores, but has no"):
        logs_from(tmp_path, row)
