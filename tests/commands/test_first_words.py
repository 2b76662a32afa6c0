"""What a verb has loaded when it says its first word: nothing that the word doesn't need. Time is not measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from small_runs import Learnt

from pollex.terminal.main import Verbs

PROGRAM = """
import io, os, sys

class FirstWord(io.RawIOBase):
    def writable(self):
        return True
    def write(self, said):
        loaded = sorted({name.partition(".")[0] for name in sys.modules})
        os.write(1, b"\\n".join([" ".join(loaded).encode(), bytes(said)]))
        os._exit(0)

sys.stdout = sys.stderr = io.TextIOWrapper(io.BufferedWriter(FirstWord()), encoding="utf-8")
sys.argv[0] = "pollex"
from pollex.terminal.main import main
main()
"""
"""The command, ended at its first word by a stream that tells what is loaded."""

WORKS = {"langchain_core", "langgraph", "langsmith", "matplotlib", "openai", "openvino", "pandas", "relplot"}
WORKS |= {"scipy", "sentence_transformers", "sklearn", "torch"}
"""Each takes a quarter of a second or more, and works on conversations and tables that were read."""

READS = {"duckdb", "numpy", "pydantic", "rich"}
"""What reads and shows them; a tenth of a second at most."""

ENDPOINT = ["--model", "m", "--base-url", "http://127.0.0.1:9"]
QUESTION = ["--question", "Was it done?"]


def first_word(*arguments: object, cwd: Path) -> tuple[str, set[str]]:
    """What a command says first, and the packages that it has loaded by then."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd)
    loaded, _, word = ended.stdout.partition("\n")
    return word, set(loaded.split())


def verbs() -> list[list[str]]:
    """All of them, with those of a verb that has some of its own."""
    group = Verbs("pollex")
    found = []
    for name in group.list_commands(context := group.make_context("pollex", [], resilient_parsing=True)):
        command = group.get_command(context, name)
        found += [[name, *([below] if below else [])] for below in getattr(command, "commands", {"": None})]
    return found


@pytest.mark.parametrize("verb", verbs(), ids=" ".join)
@pytest.mark.parametrize("option", ["--help", "--no-such-option"])
def test_help_and_a_wrong_option_are_told_before_anything_is_loaded(
    verb: list[str], option: str, tmp_path: Path
) -> None:
    word, loaded = first_word(*verb, option, cwd=tmp_path)
    assert word.startswith("Usage: pollex")
    assert loaded & (WORKS | READS) == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ["learn", "no.jsonl"],
        ["learn", "no.jsonl", *ENDPOINT],
        ["answer", "no.jsonl", *ENDPOINT],
        ["judge", "no.jsonl", *QUESTION],
        ["judge", "no.jsonl", *QUESTION, *ENDPOINT],
        ["judge", "no.jsonl", "--reference", *ENDPOINT],
        ["score", "no.jsonl", "--rubrics", "no.json"],
        ["evaluate", "no.jsonl", "--rubrics", "no.json"],
        ["refit", "no.jsonl", "--rubrics", "no.json"],
        ["label", "next", "no.jsonl", "--rubrics", "no.json"],
        ["label", "next", "no.csv", "no.csv", "--calibrator", "none"],
        ["calibrate", "fit", "no.csv", "no.csv", "--out", "calibrator"],
        ["calibrate", "predict", "none", "no.csv"],
        ["calibrate", "report", "none", "no.csv", "no.csv"],
        ["why", "no.json", "815b"],
    ],
    ids=" ".join,
)
def test_a_file_that_is_not_there_is_told_before_anything_is_loaded_that_works(
    arguments: list[str], tmp_path: Path
) -> None:
    word, loaded = first_word(*arguments, cwd=tmp_path)
    assert "no such file" in word
    assert loaded & WORKS == set()


@pytest.mark.parametrize(
    "arguments",
    [["label", "next", "--calibrator"], ["calibrate", "predict"], ["calibrate", "report"]],
    ids=" ".join,
)
def test_a_calibrator_that_is_not_there_is_told_so_with_tables(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "answers.csv").touch()
    tables = ["answers.csv"] if "predict" in arguments else ["answers.csv", "answers.csv"]
    word, loaded = first_word(*arguments, "none", *tables, cwd=tmp_path)
    assert word.startswith("Error: none: no calibrator can be read there")
    assert loaded & WORKS == set()


@pytest.mark.parametrize("verb", [["score"], ["evaluate"], ["refit"], ["label", "next"]], ids=" ".join)
def test_a_log_that_is_not_there_is_told_so_with_a_rubric_set(verb: list[str], learnt: Learnt, tmp_path: Path) -> None:
    word, loaded = first_word(*verb, "no.jsonl", "--rubrics", learnt.rubrics, "--store", "store", cwd=tmp_path)
    assert word.startswith("Error: no.jsonl: no such file")
    assert loaded & WORKS == set()


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        ["learn"],
        ["score", "--rubrics", "RUBRICS"],
        ["evaluate", "--rubrics", "RUBRICS"],
        ["refit", "--rubrics", "RUBRICS"],
        ["label", "next", "--rubrics", "RUBRICS"],
        ["judge", *QUESTION],
    ],
    ids=" ".join,
)
def test_what_was_read_is_told_before_anything_is_loaded_that_works(
    arguments: list[str], dry_run: bool, learnt: Learnt, tmp_path: Path
) -> None:
    given = [learnt.rubrics if word == "RUBRICS" else word for word in arguments]
    given += [learnt.log, "--store", "store", *(["--dry-run"] if dry_run else [])]
    word, loaded = first_word(*given, cwd=tmp_path)
    assert ("no calls" if dry_run else "conversations: ") in word
    assert loaded & WORKS == set()


@pytest.mark.parametrize("arguments", [["learn"], ["judge", *QUESTION]], ids=" ".join)
def test_a_plan_for_a_model_needs_no_client(arguments: list[str], learnt: Learnt, tmp_path: Path) -> None:
    word, loaded = first_word(*arguments, learnt.log, *ENDPOINT, "--dry-run", "--store", "store", cwd=tmp_path)
    assert "planned" in word
    assert loaded & WORKS == set()
