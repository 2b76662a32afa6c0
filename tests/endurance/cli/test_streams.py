"""Standard input, standard output and a terminal's encoding, of commands in processes of their own."""

import json
from pathlib import Path

import pytest
from small_log import run_apart, small_log
from small_runs import Learnt


def test_scores_are_read_from_standard_input(learnt: Learnt, tmp_path: Path, store: Path) -> None:
    ended = run_apart(
        "score", "-", "--rubrics", learnt.rubrics, "--out", "s.jsonl", "--store", store,
        cwd=tmp_path, stdin=json.dumps(small_log()[0]) + "\n",
    )  # fmt: skip
    assert (ended.code, ended.err) == (0, "")
    assert "built-in (no LLM)" in ended.out
    assert [
        one["id"] for one in map(json.loads, (tmp_path / "s.jsonl").read_text().splitlines())
    ] == ["c000"]


def test_scores_go_to_standard_output_and_what_is_for_people_does_not(
    learnt: Learnt, tmp_path: Path, store: Path
) -> None:
    arguments = ("score", learnt.log, "--rubrics", learnt.rubrics, "--out", "-", "--store", store)
    ended = run_apart(*arguments, cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert len([json.loads(line)["netsat"] for line in ended.out.splitlines()]) == 48
    assert "48 scored" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == [store.name]


@pytest.mark.parametrize(
    "arguments", [("trace", "last"), ("trace", "last", "--conversation", "c003")], ids=len
)
def test_a_terminal_that_cannot_show_a_character_gets_it_spelled_out(
    learnt: Learnt, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    ended = run_apart(*arguments, "--store", learnt.store, cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert (ended.code, ended.err) == (0, "")
    assert "\\x" in ended.out
