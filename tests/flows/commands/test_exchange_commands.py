"""What leaves for other tools and comes from them, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_runs import Learnt

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


def test_a_learned_set_is_exported_and_scores_are_written_as_requests(
    learnt: Learnt, store: Path, tmp_path: Path
) -> None:
    told = run("export", learnt.rubrics, "--to", "promptfoo", "--out", tmp_path / "evals")
    assert "exact for each test" in told
    assert "fitted to the built-in judge" in told
    assert (tmp_path / "evals" / "promptfooconfig.yaml").exists()
    requests = tmp_path / "scores.json"
    given = (learnt.log, "--rubrics", learnt.rubrics, "--store", store, "--out", requests)
    run("score", *given, "--as", "langfuse")
    first = json.loads(requests.read_text(encoding="utf-8"))[0]
    assert (first["name"], first["dataType"]) == ("pollex_netsat", "NUMERIC")
    with pytest.raises(WrongUse, match="no form of scores is called 'excel'"):
        run("score", *given, "--as", "excel")
