"""No file takes more than its rows are worth: one row that is too long is that row's outcome."""

import gzip
import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pollex.errors import BadInput, BadRubrics
from pollex.formats import bounds, files
from pollex.formats.bounds import CUT, PART, TooLong, held
from pollex.formats.fields import ReadOptions
from pollex.formats.peers.rubrics_in import rubrics_of
from pollex.formats.read_logs import read_logs


def chat(id_: str, said: str) -> dict[str, Any]:
    return {"id": id_, "messages": [{"role": "user", "content": said}, {"role": "assistant", "content": "ok"}]}


def as_lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_csv(rows: list[dict[str, Any]]) -> str:
    turns = [(row["id"], turn["role"], turn["content"]) for row in rows for turn in row["messages"]]
    return "\n".join(["conversation_id,role,content", *(",".join(turn) for turn in turns)])


@pytest.mark.parametrize("write", [as_lines, json.dumps, as_csv])
def test_one_huge_turn_is_one_rows_outcome_and_the_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[list[dict[str, Any]]], str]
) -> None:
    for name, value in {"ROW": 8000, "PART": 100}.items():
        monkeypatch.setattr(bounds, name, value)
    monkeypatch.setattr(files, "PART", 100)
    monkeypatch.setattr(files, "DOCUMENT", 9000)
    (path := tmp_path / "log.gz").write_bytes(
        gzip.compress(write([chat("a", "hi"), chat("huge", "aé" * 9000), chat("b", "hi")]).encode())
    )
    logs = read_logs(path, options=ReadOptions(max_turn_chars=500))
    assert [(one.id, one.flags) for one in logs] == [("a", ()), ("huge", ("too_large",)), ("b", ())]
    assert all(len(turn.content) <= 500 + len(CUT) for one in logs for turn in one.turns)
    assert not logs.bad_rows


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=300), min_size=1), st.booleans(), st.integers(1, 40))
def test_a_row_whose_long_texts_are_cut_is_the_row_with_shorter_texts(texts: list[str], ascii_: bool, n: int) -> None:
    written = json.dumps(texts, ensure_ascii=ascii_)
    parts = [written[at : at + n] for at in range(0, len(written), n)]
    for text, kept in zip(texts, json.loads(bounds._cut(parts, 20, 10**6)), strict=True):
        assert kept == text or (kept.endswith(CUT) and len(kept) > 20)
        assert text.encode("utf-16").startswith(kept.removesuffix(CUT).encode("utf-16", "surrogatepass"))


def test_what_is_too_long_with_its_texts_cut_too_is_a_bad_row() -> None:
    assert isinstance(held(["[" + "1," * PART] * 3, 20, 2 * PART), TooLong)
    assert isinstance(held(["a" * PART] * 3, None, 2 * PART), TooLong)


def test_a_file_of_no_rows_is_refused_before_it_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "LINE", 1 << 20)
    monkeypatch.setattr(bounds, "BLANK", 1 << 20)
    with (tmp_path / "sparse.jsonl").open("wb") as file:
        file.truncate(1 << 30)
    (tmp_path / "breaks.jsonl").write_bytes(b"\n" * (3 << 20))
    (tmp_path / "packed.gz").write_bytes(gzip.compress(b"\n" * (3 << 20)))
    for name, said in [("sparse.jsonl", "line of more than 512 MB"), ("breaks.jsonl", "4 MB"), ("packed.gz", "4 MB")]:
        with pytest.raises(BadInput, match=said) as caught:
            read_logs(tmp_path / name)
        assert caught.value.where.startswith(f"{tmp_path / name}:")


def test_a_pipe_is_read_and_what_never_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    writer = threading.Thread(target=pipe.write_text, args=[as_lines([chat("a", "hi")])])
    writer.start()
    assert [one.id for one in read_logs(pipe)] == ["a"]
    writer.join()
    monkeypatch.setattr(files, "PATIENCE", 0)
    with pytest.raises(BadInput, match="nobody writes into"):
        read_logs(pipe)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for path in ("/dev/zero", "/proc/kmsg", tmp_path / "socket"):
            with pytest.raises(BadInput, match="a device"):
                read_logs(path)


def test_aliases_that_multiply_are_no_rubrics(tmp_path: Path) -> None:
    def levels(one: str) -> str:
        return "\n".join(f"{b}: &{b} " + one.replace("*", f"*{a}") for a, b in zip("abcdefgh", "bcdefghi", strict=True))

    laughs = "[" + ", ".join("*" * 9) + "]"
    for text in (levels(laughs), levels("{<<: " + laughs + "}"), "b: &b [*b, *a]", "x" * 2_000_000):
        (path := tmp_path / "rubrics.yaml").write_text(f"a: &a {{requirement: Answers}}\n{text}\n")
        with pytest.raises(BadRubrics, match="more than a million"):
            rubrics_of(path)
    path.write_text("a: &a {requirement: Answers}\nb: [*a, *a]\n")
    assert [one.text for one in rubrics_of(path)] == ["Answers"]
