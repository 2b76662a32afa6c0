"""What leaves for other tools and comes from them, on the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from pollex.cli.main import pollex
from pollex.errors import WrongUse

EXPORTS = Path(__file__).parents[2] / "unit" / "formats" / "exchange"


def run(*arguments: object) -> str:
    done = CliRunner().invoke(pollex, [str(one) for one in arguments], catch_exceptions=False, standalone_mode=False)
    return done.output


def test_inspect_tells_formats_conversations_and_scores_with_their_sources() -> None:
    folder = EXPORTS / "langfuse" / "server-62751446"
    told = json.loads(run("inspect", *sorted(folder.glob("blob-*")), "--json").splitlines()[-1])
    assert told["labels"] == {"positive": 2, "negative": 3, "none": 1}
    assert told["formats"] == {"Langfuse observations": 26, "Langfuse scores": 6}
    assert {"name": "helpfulness", "source": "EVAL", "scores": 1, "taken": False} in told["scores"]


def test_a_learned_set_is_exported_and_scores_are_written_as_requests(tmp_path: Path) -> None:
    sample = Path(__file__).parents[3] / "examples" / "debugging.jsonl"
    shutil.copy(sample, tmp_path / "log.jsonl")
    rubrics, store = tmp_path / "rubrics.json", tmp_path / "store"
    run("learn", tmp_path / "log.jsonl", "--rubrics-from", "generic", "--out", rubrics, "--store", store)
    assert rubrics.exists()
    told = run("export", rubrics, "--to", "promptfoo", "--out", tmp_path / "evals")
    assert "exact for each test" in told
    assert "fitted to the built-in judge" in told
    assert (tmp_path / "evals" / "promptfooconfig.yaml").exists()
    requests = tmp_path / "scores.json"
    run("score", tmp_path / "log.jsonl", "--rubrics", rubrics, "--as", "langfuse", "--out", requests, "--store", store)
    first = json.loads(requests.read_text(encoding="utf-8"))[0]
    assert (first["name"], first["dataType"]) == ("pollex_netsat", "NUMERIC")
    with pytest.raises(WrongUse, match="no form of scores is called 'excel'"):
        run("score", tmp_path / "log.jsonl", "--rubrics", rubrics, "--as", "excel", "--out", requests, "--store", store)
