"""Modules of a stranger that lie in the current folder are imported by nothing that pollex starts."""

import asyncio
from pathlib import Path

import pytest
from small_log import small_log, write_log
from small_runs import Learnt

from pollex.conversations.conversation import Conversation
from pollex.formats.read_logs import read_logs
from pollex.rubrics.rubric_set import RubricSet
from pollex.services.scorer import BatchScorer, ScoringPool
from pollex.web.children import Children

NAMES = (
    "click",
    "numpy",
    "yaml",
    "json",
    "pickle",
    "socket",
    "pollex",
    "multiprocessing",
    "sitecustomize",
)


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Left behind by any module of the current folder that is imported."""
    canary = tmp_path / "canary"
    (folder := tmp_path / "stranger").mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"open({str(canary)!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(folder)
    return canary


def test_a_command_that_the_server_starts_imports_none(canary: Path) -> None:
    children = Children()
    child = children.start("lists runs", ["runs", "--help"], back="/")
    while not child.over:
        asyncio.run(asyncio.sleep(0.05))
    children.close()
    assert (child.state, list(child.said)) == ("done", [])
    assert not canary.exists(), canary.read_text()


def test_processes_that_score_import_none(canary: Path, learnt: Learnt, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.jsonl", small_log(4))
    conversations: list[Conversation] = list(read_logs([str(log)]).conversations)
    with ScoringPool(BatchScorer(RubricSet.load(learnt.rubrics)), 2) as pool:
        scores = asyncio.run(pool.scores(conversations))
    assert len(scores) == len(conversations)
    assert not canary.exists(), canary.read_text()
