"""Whole logs: what is counted, what stops the run, and what hostile text becomes."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pollex.conversations.conversation import Conversation, Label, Turn
from pollex.conversations.logs import Logs
from pollex.errors import BadInput, WrongUse
from pollex.formats.fields import ReadOptions
from pollex.formats.log_shapes.readers import iterate_metadata_times
from pollex.formats.read_logs import (
    LogTally,
    PlacedConversation,
    make_logs_of_conversations,
    read_logs,
)
from pollex.formats.tally import MAX_TEXT_BYTES_IN_MEMORY, SpilledList

ROLES = ("user", "assistant")


def row(id_: Any, *contents: str, **fields: Any) -> dict[str, Any]:
    messages = [
        {"role": ROLES[n % 2], "content": content}
        for n, content in enumerate(contents or ("x", "y"))
    ]
    return {"id": id_, "messages": messages, **fields}


def write(folder: Path, *rows: dict[str, Any] | str) -> Path:
    path = folder / "log.jsonl"
    lines = (line if isinstance(line, str) else json.dumps(line) for line in rows)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def logs_from(folder: Path, *rows: dict[str, Any] | str, **options: Any) -> Logs:
    return read_logs(write(folder, *rows), options=ReadOptions(**options))


def test_bad_rows_stop_the_run_by_default_and_those_allowed_are_kept_with_place_and_reason(
    tmp_path: Path,
) -> None:
    with pytest.raises(
        BadInput, match=r"(?s)1 row is bad:.*log.jsonl:2: not a JSON line.*max_bad=1"
    ):
        logs_from(tmp_path, row("a"), "{", row("b"))
    with pytest.raises(
        BadInput, match=r"(?s)8 rows are bad:.*8 rows, the first .*:2: (?!.*jsonl:7:)"
    ):
        logs_from(tmp_path, row("a"), *["{"] * 8, max_bad=7)
    for id_ in ([1], {"a": 1}):
        with pytest.raises(BadInput, match="the id is a list or an object"):
            logs_from(tmp_path, row(id_))
    logs = logs_from(tmp_path, row("a"), "{", row("b"), max_bad=1)
    assert [c.id for c in logs] == ["a", "b"]
    assert [(bad.line, bad.hint) for bad in logs.bad_rows] == [(2, "correct or remove the line")]
    for options in ({"max_bad": -1}, {"on_duplicate": "merge"}, {"max_turn_chars": 0}):
        with pytest.raises(WrongUse):
            ReadOptions(**options)  # type: ignore[arg-type]


def test_unlabeled_and_unscorable_conversations_are_not_bad(tmp_path: Path) -> None:
    logs = logs_from(tmp_path, row("a"), row("b", "only the user"), row("c", "", " "))
    assert [c.not_scorable for c in logs] == ["", "no assistant turn", "no turn with text"]
    assert logs.counts == {Label.POSITIVE: 0, Label.NEGATIVE: 0, Label.NONE: 3}


def test_release_and_time_are_found_in_a_row_and_one_level_down(tmp_path: Path) -> None:
    inner = {"prompt_version": "p1", "created_at": "2026-09-07T00:00:00Z", "time": 12}
    logs = logs_from(
        tmp_path,
        row("a", release="2", metadata=inner),
        row("b", version=3, timestamp=["", "2026-09-07"]),
    )
    assert [one.prompt for one in logs] == ["p1", "3"]
    assert [list(iterate_metadata_times(one.metadata)) for one in logs] == [[1788739200.0]] * 2, (
        "12 is no time"
    )


def test_different_conversations_of_one_id_stop_the_run_and_are_listed(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput,
        match=r"(?s)1 id has different.*'1' in .*log.jsonl:1 and .*log.jsonl:3.*on_duplicate='last'",
    ):
        logs_from(tmp_path, row(1), row("b"), row("1", "other", "text"))
    with pytest.raises(BadInput, match="1 id has different conversations"):
        logs_from(tmp_path, row("a", thumbs="up"), row("a", thumbs="down"))
    logs = logs_from(tmp_path, row("a", time=1), row("a", time=2), row("b"))
    assert ([c.id for c in logs], logs.duplicates) == (["a", "b"], 1), "identical ones count once"


@pytest.mark.parametrize(("choice", "content"), [("first", "one"), ("last", "three")])
def test_the_user_chooses_which_of_different_conversations_counts(
    tmp_path: Path, choice: str, content: str
) -> None:
    rows = [row("a", "one", thumbs="up"), row("b"), row("a", "two"), row("a", "three", thumbs="up")]
    logs = logs_from(tmp_path, *rows, on_duplicate=choice)
    assert [(c.id, c.turns[0].content) for c in logs] == [("a", content), ("b", "x")]
    assert (logs.overruled, logs.duplicates, logs.counts[Label.POSITIVE]) == (2, 0, 1)


def test_ids_become_text_by_rule(tmp_path: Path) -> None:
    logs = logs_from(
        tmp_path, row(1), row("01"), row(1.0), row("2024-01-01"), row(True), row(10**20)
    )
    assert [c.id for c in logs] == ["1", "01", "1.0", "2024-01-01", "true", "1" + "0" * 20]


def test_rows_without_id_get_one_from_their_content(tmp_path: Path) -> None:
    rows = [row(None, "x"), row("", "y"), row(None, "x"), row(None, "x", thumbs="up")]
    logs = logs_from(tmp_path, *rows)
    assert len({c.id for c in logs}) == len(logs) == 3
    assert all(c.id.startswith("sha256-") for c in logs)
    assert logs.duplicates == 1
    assert "3 conversations have no id; a hash of the row stands in for it (sha256-…)" in logs.notes


def test_judge_and_group_are_text_and_all_else_is_metadata(tmp_path: Path) -> None:
    fields = {"user": {"id": 7}, "annotator": "kim", "model": "m-1", "tags": ["a"]}
    (conversation,) = logs_from(tmp_path, row("a", **fields), group_field="user.id")
    assert (conversation.judge, conversation.group) == ("kim", "7")
    assert conversation.metadata == {"user": {"id": 7}, "model": "m-1", "tags": ["a"]}


def test_lone_surrogates_are_replaced_everywhere_and_flagged(tmp_path: Path) -> None:
    line = (
        r'{"id": "a\udc00", "messages": [{"role": "user", "content": "b\ud83d '
        r'c\ud83d\ude00"}], "k\ud800": ["\ud800"]}'
    )
    logs = logs_from(tmp_path, line)
    (conversation,) = logs
    assert conversation.turns[0].content == "b\ufffd c😀"
    assert (conversation.id, conversation.metadata) == ("a\ufffd", {"k\ufffd": ["\ufffd"]})
    assert logs.flags == {"surrogates": ("a\ufffd",)}
    conversation.model_dump_json().encode("utf-8")


def test_deceiving_characters_are_kept_and_flagged(tmp_path: Path) -> None:
    odd = [
        ("a\x00b", "nul"),
        ("a\u202eb", "bidi"),
        ("a\u200bb", "zero_width"),
        ("\ufeffa", "zero_width"),
    ]
    for content, flag in odd:
        logs = logs_from(tmp_path, row("a", content), row("b"))
        assert logs.conversations[0].turns[0].content == content
        assert logs.flags == {flag: ("a",)}
    assert logs_from(tmp_path, row("a", "👩‍💻 می‌خواهم שלום")).flags == {}, (
        "joiners in emoji and Persian are nothing odd"
    )


def test_an_oversized_turn_marks_its_conversation_and_the_run_goes_on(tmp_path: Path) -> None:
    logs = logs_from(tmp_path, row("a", "x" * 1_000_001, "y", thumbs="up"), row("b", thumbs="up"))
    assert logs.flags == {"too_large": ("a",)}
    assert "too large" in logs.conversations[0].not_scorable
    assert [c.id for c in logs.positives] == [c.id for c in logs.learnable] == ["b"]


def test_five_thousand_turns_are_a_conversation_like_any_other_and_more_are_too_many(
    tmp_path: Path,
) -> None:
    for number, why in ((5_000, ""), (5_001, "too large: more than 5,000 turns")):
        (conversation,) = logs_from(tmp_path, row("a", *["word"] * number))
        assert (len(conversation.turns), conversation.not_scorable) == (number, why)


def test_the_fingerprint_sees_text_label_and_id_but_not_the_order_of_rows(tmp_path: Path) -> None:
    rows = [row("a", thumbs="up"), row("b", thumbs="down"), row("c")]
    whole = logs_from(tmp_path, *rows).fingerprint
    assert whole == logs_from(tmp_path, *reversed(rows), rows[0]).fingerprint
    for change in (row("c", "x", "z"), row("c", thumbs="up"), row("d"), row("c", group="g")):
        assert logs_from(tmp_path, *rows[:2], change).fingerprint != whole


def test_conversations_from_python_become_logs_with_the_same_fingerprint(tmp_path: Path) -> None:
    logs = logs_from(tmp_path, row("a", thumbs="up"), row("b"))
    again = make_logs_of_conversations(logs.conversations)
    assert (again.fingerprint, again.counts) == (logs.fingerprint, logs.counts)
    with pytest.raises(BadInput):
        make_logs_of_conversations(
            [
                logs.conversations[0],
                logs.conversations[0].model_copy(update={"label": Label.NEGATIVE}),
            ]
        )


def conversation(number: int, size: int = 10) -> Conversation:
    turns = (Turn(role="user", content="é" * size), Turn(role="assistant", content=str(number)))
    return Conversation(
        id=str(number), turns=turns, metadata={"n": [number, None, {"x": 1.5}]}, flags=("nul",)
    )


def shelved(
    conversations: Sequence[Conversation], memory: int = MAX_TEXT_BYTES_IN_MEMORY
) -> SpilledList:
    shelf = SpilledList(memory)
    for one in conversations:
        shelf.append(one)
    return shelf


def test_a_shelf_reads_the_same_from_memory_and_from_disk() -> None:
    many = [conversation(n) for n in range(50)]
    in_memory = shelved(many)
    on_disk = shelved(many, memory=20_000)
    assert (in_memory.on_disk, on_disk.on_disk) == (False, True)
    order = random.Random(0).sample(range(50), 50)
    assert [on_disk[n] for n in order] == [in_memory[n] for n in order] == [many[n] for n in order]
    assert list(on_disk) == list(in_memory) == many
    assert on_disk[-1] == many[-1]
    assert on_disk[5:9] == in_memory[5:9] == tuple(many[5:9])
    with pytest.raises(IndexError):
        on_disk[50]
    for shelf in (in_memory, on_disk):
        shelf.replace(1, conversation(7, size=1_000))
        assert [c.id for c in shelf][:3] == ["0", "7", "2"]


def test_a_log_that_is_too_large_for_memory_is_counted_and_walked_alike(tmp_path: Path) -> None:
    path = write(
        tmp_path, *(row(n, "a" * n, "b", thumbs="up" if n % 2 else "down") for n in range(40))
    )
    logs = read_logs(path)
    tally = LogTally(ReadOptions(), memory=5_000)
    for number, item in enumerate(logs):
        tally.add(PlacedConversation(item, "log", number))
    large = tally.logs(logs.notes)
    assert not isinstance(large.conversations, tuple)
    assert (large.fingerprint, large.counts, list(large)) == (
        logs.fingerprint,
        logs.counts,
        list(logs),
    )


def test_errors_show_hostile_field_names_and_values_as_escapes(tmp_path: Path) -> None:
    for fields in (
        {"\x1b[2J\u202e": 1},
        row("a", thumbs="\x1b[2J\u202e"),
        row("a", thumbs={"\x1b[2J\u202e": 1}),
    ):
        with pytest.raises(BadInput, match=r"\\x1b\[2J\\u202e"):
            logs_from(tmp_path, fields)


def test_a_log_that_a_notebook_shows_is_figures_and_no_conversations(tmp_path: Path) -> None:
    logs = logs_from(tmp_path, row("a", "words", "more words", thumbs="up"), row("b"))
    assert "words" not in repr(logs)
    assert "1 up" in repr(logs)


def talk(id_: str, text: str, label: Label) -> Conversation:
    said = (Turn(role="user", content=text), Turn(role="assistant", content="Good day"))
    return Conversation(id=id_, turns=said, label=label)


def test_a_text_counts_once_with_the_label_that_most_of_it_have() -> None:
    up = Label.POSITIVE
    down = Label.NEGATIVE
    labels = [
        ("a", "Hello", down),
        ("b", "Hello", up),
        ("c", "Hello", up),
        ("d", "Bye", down),
        ("e", "?", up),
    ]
    logs = make_logs_of_conversations(
        [talk(*one) for one in labels] + [talk("f", "?", down), talk("g", "Bye", Label.NONE)]
    )
    assert {c.id: c.label.value for c in logs.learnable} == {"b": "positive", "d": "negative"}
    assert logs.repeated == {"a": "b", "c": "b", "e": "e", "f": "f"}
    assert logs.note_on_repeats == [
        "4 labeled conversations are left out, having the text of another one ('b' stands 3 "
        "times): each text counts once, with the label that most of its copies have; the text of 2 "
        "of these has as many thumbs up as down, and doesn't count"
    ]


def test_nothing_is_said_of_a_log_without_repeats() -> None:
    logs = make_logs_of_conversations(
        [talk("a", "Hello", Label.POSITIVE), talk("b", "Bye", Label.NEGATIVE)]
    )
    assert (logs.note_on_repeats, logs.repeated, len(logs.learnable)) == ([], {}, 2)


def test_what_several_annotators_say_of_a_text_is_no_repetition() -> None:
    labels = [
        ("a", "Hello", Label.POSITIVE),
        ("b", "Hello", Label.NEGATIVE),
        ("c", "Hello", Label.NEGATIVE),
    ]
    rated = [
        talk(*one).model_copy(update={"judge": who}) for one, who in zip(labels, "xyy", strict=True)
    ]
    assert make_logs_of_conversations(rated).repeated == {"c": "b"}
