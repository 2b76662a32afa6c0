"""Stages of runs, and nodes of their graphs, are told in words, in the browser and in a terminal."""

import ast
from pathlib import Path

import pytest
from rich.console import Console
from web_site import client_of, made_app, made_store

import pollex
from pollex.cli.session import ProgressBars
from pollex.graphs.hooks import name_stage
from pollex.web.run_page import read_drawn_graphs

SOURCES = Path(pollex.__file__).resolve().parent


def list_started_stages() -> set[str]:
    """Return the stages that the code begins by a text."""
    stages = set()
    for folder in (SOURCES, SOURCES.parent / "graphs"):
        for path in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr == "start"
                    and "progress" in ast.unparse(node.func.value)
                    and isinstance(node.args[0], ast.Constant)
                ):
                    stages.add(str(node.args[0].value))
    return stages


@pytest.mark.parametrize(("command", "graph"), read_drawn_graphs().items())
def test_every_node_of_a_graph_has_words(command: str, graph: dict[str, list[str]]) -> None:
    for node in graph["nodes"]:
        if not node.startswith("__"):
            assert name_stage(node, command) != node


def test_every_stage_that_begins_is_told_in_words() -> None:
    stages = list_started_stages()
    assert {"read", "extract", "select"} <= stages
    in_words = {name_stage(stage) for stage in stages}
    assert [words for words in in_words if not words[:1].isupper() and " " not in words] == []
    bars = ProgressBars(Console())
    bars.start("summarize_dsat", 3)
    assert bars._line_of("summarize_dsat").startswith("Writing what goes wrong")


async def test_a_run_at_work_says_what_it_does_in_words(tmp_path: Path) -> None:
    with made_store(tmp_path) as store:
        run = store.begin("learn", arguments={}, fingerprint={}, versions={})
        counted = {"n": 1, "active": 1, "errors": 1}
        error = {"node": "judge_pool", "item": "", "text": "no"}
        store.pulse(
            run.id,
            {
                "stages": {"summarize_dsat": {"done": 1, "total": 2}},
                "used": {},
                "nodes": {"fit_extractor": counted},
                "errors": [error],
            },
        )
        await store.settle()
        async with client_of(made_app(store)) as client:
            page = (await client.get(f"/runs/{run.id}/live")).text
    for words in (
        "Writing what goes wrong: 1 of 2",
        "Telling the thumbs apart",
        "Judging the pool",
    ):
        assert words in page
    for node in ("summarize_dsat", "fit_extractor", "judge_pool"):
        assert node not in page
