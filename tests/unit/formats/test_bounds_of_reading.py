"""Whatever stands in a file, reading takes no more than its rows are worth, and ends with them or an error of ours."""

import contextlib
import gzip
import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pollex.conversations.logs import Logs
from pollex.errors import BadInput, BadRubrics, PollexError
from pollex.formats import bounds, files
from pollex.formats.bounds import CUT_TEXT_ENDING, READ_CHUNK_SIZE, TooLongRow, join_or_cut_parts
from pollex.formats.fields import ReadOptions
from pollex.formats.peers.rubrics_in import load_rubrics_of_any_tool
from pollex.formats.read_logs import read_logs


def chat(id_: str, said: str) -> dict[str, Any]:
    return {
        "id": id_,
        "messages": [{"role": "user", "content": said}, {"role": "assistant", "content": "ok"}],
    }


def as_lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_csv(rows: list[dict[str, Any]]) -> str:
    turns = [(row["id"], turn["role"], turn["content"]) for row in rows for turn in row["messages"]]
    return "\n".join(["conversation_id,role,content", *(",".join(turn) for turn in turns)])


@pytest.mark.parametrize("write", [as_lines, json.dumps, as_csv])
def test_one_huge_turn_is_one_rows_outcome_and_the_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[list[dict[str, Any]]], str]
) -> None:
    for name, value in {"MAX_ROW_CHARS": 8000, "READ_CHUNK_SIZE": 100}.items():
        monkeypatch.setattr(bounds, name, value)
    monkeypatch.setattr(files, "READ_CHUNK_SIZE", 100)
    monkeypatch.setattr(files, "MAX_DOCUMENT_CHARS", 9000)
    (path := tmp_path / "log.gz").write_bytes(
        gzip.compress(write([chat("a", "hi"), chat("huge", "aé" * 9000), chat("b", "hi")]).encode())
    )
    logs = read_logs(path, options=ReadOptions(max_turn_chars=500))
    assert [(one.id, one.flags) for one in logs] == [("a", ()), ("huge", ("too_large",)), ("b", ())]
    assert all(
        len(turn.content) <= 500 + len(CUT_TEXT_ENDING) for one in logs for turn in one.turns
    )
    assert not logs.bad_rows


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.text(st.characters(codec="utf-8"), max_size=300), min_size=1),
    st.booleans(),
    st.integers(1, 40),
)
def test_a_row_whose_long_texts_are_cut_is_the_row_with_shorter_texts(
    texts: list[str], ascii_: bool, n: int
) -> None:
    written = json.dumps(texts, ensure_ascii=ascii_)
    parts = [written[at : at + n] for at in range(0, len(written), n)]
    for text, kept in zip(
        texts, json.loads(bounds._cut_long_json_texts(parts, 20, 10**6)), strict=True
    ):
        assert kept == text or (kept.endswith(CUT_TEXT_ENDING) and len(kept) > 20)
        assert text.encode("utf-16").startswith(
            kept.removesuffix(CUT_TEXT_ENDING).encode("utf-16", "surrogatepass")
        )


def test_what_is_too_long_with_its_texts_cut_too_is_a_bad_row() -> None:
    assert isinstance(
        join_or_cut_parts(["[" + "1," * READ_CHUNK_SIZE] * 3, 20, 2 * READ_CHUNK_SIZE), TooLongRow
    )
    assert isinstance(
        join_or_cut_parts(["a" * READ_CHUNK_SIZE] * 3, None, 2 * READ_CHUNK_SIZE), TooLongRow
    )


def test_a_file_of_no_rows_is_refused_before_it_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_LINE_BYTES", 1 << 20)
    monkeypatch.setattr(bounds, "MAX_BLANK_BYTES", 1 << 20)
    with (tmp_path / "sparse.jsonl").open("wb") as file:
        file.truncate(1 << 30)
    (tmp_path / "breaks.jsonl").write_bytes(b"\n" * (3 << 20))
    (tmp_path / "packed.gz").write_bytes(gzip.compress(b"\n" * (3 << 20)))
    for name, said in [
        ("sparse.jsonl", "line of more than 512 MB"),
        ("breaks.jsonl", "4 MB"),
        ("packed.gz", "4 MB"),
    ]:
        with pytest.raises(BadInput, match=said) as caught:
            read_logs(tmp_path / name)
        assert caught.value.where.startswith(f"{tmp_path / name}:")


def test_a_pipe_is_read_and_what_never_ends_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    writer = threading.Thread(target=pipe.write_text, args=[as_lines([chat("a", "hi")])])
    writer.start()
    assert [one.id for one in read_logs(pipe)] == ["a"]
    writer.join()
    monkeypatch.setattr(files, "PIPE_WAIT_SECONDS", 0)
    with pytest.raises(BadInput, match="nobody writes into"):
        read_logs(pipe)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for path in ("/dev/zero", "/proc/kmsg", tmp_path / "socket"):
            with pytest.raises(BadInput, match="a device"):
                read_logs(path)


def test_aliases_that_multiply_are_no_rubrics(tmp_path: Path) -> None:
    def levels(one: str) -> str:
        return "\n".join(
            f"{b}: &{b} " + one.replace("*", f"*{a}")
            for a, b in zip("abcdefgh", "bcdefghi", strict=True)
        )

    laughs = "[" + ", ".join("*" * 9) + "]"
    for text in (levels(laughs), levels("{<<: " + laughs + "}"), "b: &b [*b, *a]", "x" * 2_000_000):
        (path := tmp_path / "rubrics.yaml").write_text(f"a: &a {{requirement: Answers}}\n{text}\n")
        with pytest.raises(BadRubrics, match="more than a million"):
            load_rubrics_of_any_tool(path)
    path.write_text("a: &a {requirement: Answers}\nb: [*a, *a]\n")
    assert [one.text for one in load_rubrics_of_any_tool(path)] == ["Answers"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "a0: &a0 [hello]\n"
            + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(9)),
            id="aliases upon aliases",
        ),
        "- &b [*b, *b]\n",
    ],
)
def test_a_log_whose_aliases_multiply_is_refused_in_words(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "log.yaml").write_text(text)
    with pytest.raises(BadInput, match=r"log\.yaml: YAML whose aliases .* → write it without"):
        read_logs(path)


def test_a_log_in_which_aliases_stand_for_a_text_is_read(tmp_path: Path) -> None:
    (path := tmp_path / "log.yaml").write_text(
        "- {id: a, messages: [&hello {role: user, content: Hello}, &hi {role: assistant, content: Hi}]}\n"
        "- {id: b, messages: [*hello, *hi]}\n"
    )
    assert [len(conversation.turns) for conversation in read_logs(path).conversations] == [2, 2]


many = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

NAMES = """id, messages, conversations, role, from, content, value, text, turn, conversation_id, inputs, outputs,
thumbs, rating, type, feedback_stats, extra, parent_run_id, group, judge, data, kwargs, tool_calls"""
names = st.sampled_from([name.strip() for name in NAMES.split(",")])
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["up", "user", "[", "{"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
message = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "bot", "ghost"]), "content": st.text(max_size=6) | values}
)
row = st.dictionaries(names | st.text(max_size=3), values, max_size=5)
conversation = st.builds(
    lambda rest, id_, messages: {**rest, "id": id_, "messages": messages},
    st.dictionaries(
        st.sampled_from(["thumbs", "rating", "extra", "group", "x"]), values, max_size=3
    ),
    st.sampled_from([1, "1", 1.0, "a", None]) | values,
    st.lists(message, max_size=3) | values,
)


def read(path: Path, content: bytes) -> Logs | None:
    """The logs, where nothing but consent was missing; any other end than an error of ours fails the test."""
    path.write_bytes(content)
    with contextlib.suppress(PollexError):
        return read_logs(path, options=ReadOptions(max_bad=10**9, on_duplicate="first"))
    return None


@many
@given(st.lists(conversation | st.text(max_size=10), min_size=1, max_size=8))
def test_every_line_is_a_conversation_a_duplicate_or_a_bad_row(
    tmp_path: Path, rows: list[Any]
) -> None:
    lines = [line if isinstance(line, str) else json.dumps(line) for line in rows]
    content = "\n".join(line.replace("\n", " ").replace("\r", " ") for line in lines)
    logs = read(tmp_path / "log.jsonl", content.encode("utf-8", "replace"))
    if logs is not None:
        filled = sum(
            bool(line.strip()) for line in content.encode("utf-8", "replace").decode().split("\n")
        )
        assert filled == len(logs) + logs.duplicates + logs.overruled + logs.skipped + len(
            logs.bad_rows
        )
        assert len(logs) == sum(logs.counts.values()) == len({c.id for c in logs})
        json.dumps([c.model_dump(exclude={"metadata"}) for c in logs], ensure_ascii=False).encode(
            "utf-8"
        )


rows = st.lists(row, max_size=6).map(
    lambda found: "\n".join(json.dumps(fields) for fields in found).encode()
)
table = st.text(alphabet='ab1",;\n\r\t', max_size=60).map(
    lambda text: f"conversation_id,role,text\n{text}".encode()
)


@many
@given(
    rows | table | st.binary(max_size=200), st.sampled_from(["jsonl", "json", "csv", "tsv", "log"])
)
def test_any_rows_tables_and_bytes_end_in_one_of_our_states(
    tmp_path: Path, content: bytes, ending: str
) -> None:
    read(tmp_path / f"log.{ending}", content)


@many
@given(st.integers(1, 300))
def test_a_log_cut_anywhere_gives_its_whole_lines_and_at_most_one_bad_row(
    tmp_path: Path, cut: int
) -> None:
    line = '{"id": %d, "messages": [{"role": "user", "content": "ü"}]}'
    content = "\n".join(line % n for n in range(9)).encode()[:cut]
    whole = content.count(b"\n")
    try:
        logs = read_logs(_written(tmp_path / "log.jsonl", content), options=ReadOptions(max_bad=1))
    except BadInput as error:
        assert whole == 0 or "UTF-8" in str(error)  # noqa: PT017
        return
    assert whole <= len(logs) <= whole + 1
    assert len(logs.bad_rows) <= 1


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
