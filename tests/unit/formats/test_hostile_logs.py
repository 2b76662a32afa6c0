"""Whatever stands in a file, reading ends with conversations, bad rows or an error of ours, and the counts add up."""

import contextlib
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pollex.conversations.logs import Logs
from pollex.errors import BadInput, PollexError
from pollex.formats.fields import ReadOptions
from pollex.formats.read_logs import read_logs

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
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=12
)
message = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "bot", "ghost"]), "content": st.text(max_size=6) | values}
)
row = st.dictionaries(names | st.text(max_size=3), values, max_size=5)
conversation = st.builds(
    lambda rest, id_, messages: {**rest, "id": id_, "messages": messages},
    st.dictionaries(st.sampled_from(["thumbs", "rating", "extra", "group", "x"]), values, max_size=3),
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
def test_every_line_is_a_conversation_a_duplicate_or_a_bad_row(tmp_path: Path, rows: list[Any]) -> None:
    lines = [line if isinstance(line, str) else json.dumps(line) for line in rows]
    content = "\n".join(line.replace("\n", " ").replace("\r", " ") for line in lines)
    logs = read(tmp_path / "log.jsonl", content.encode("utf-8", "replace"))
    if logs is not None:
        filled = sum(bool(line.strip()) for line in content.encode("utf-8", "replace").decode().split("\n"))
        assert filled == len(logs) + logs.duplicates + logs.overruled + logs.skipped + len(logs.bad_rows)
        assert len(logs) == sum(logs.counts.values()) == len({c.id for c in logs})
        json.dumps([c.model_dump(exclude={"metadata"}) for c in logs], ensure_ascii=False).encode("utf-8")


rows = st.lists(row, max_size=6).map(lambda found: "\n".join(json.dumps(fields) for fields in found).encode())
table = st.text(alphabet='ab1",;\n\r\t', max_size=60).map(lambda text: f"conversation_id,role,text\n{text}".encode())


@many
@given(rows | table | st.binary(max_size=200), st.sampled_from(["jsonl", "json", "csv", "tsv", "log"]))
def test_any_rows_tables_and_bytes_end_in_one_of_our_states(tmp_path: Path, content: bytes, ending: str) -> None:
    read(tmp_path / f"log.{ending}", content)


@many
@given(st.integers(1, 300))
def test_a_log_cut_anywhere_gives_its_whole_lines_and_at_most_one_bad_row(tmp_path: Path, cut: int) -> None:
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
