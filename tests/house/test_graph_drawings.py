"""`langgraph.json` opens every graph, and `docs/graphs.md` shows them as they are."""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langgraph.graph.state import CompiledStateGraph
from rooms import ROOT

from pollex.errors import WrongUse

GRAPHS: dict[str, str] = json.loads((ROOT / "langgraph.json").read_text("utf-8"))["graphs"]


def module_at(path: Path, name: str) -> ModuleType:
    """A module loaded by its path, as LangGraph's server loads one."""
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def drawings() -> ModuleType:
    """The script that draws; it is no part of the package."""
    return module_at(ROOT / "docs" / "drawings.py", "drawings")


def test_the_page_shows_the_graphs_as_the_code_draws_them(drawings: ModuleType) -> None:
    assert drawings.PAGE.read_text("utf-8") == drawings.page(), "run `make docs`"


@pytest.mark.parametrize("name", GRAPHS)
def test_every_listed_graph_is_compiled_and_bears_its_name(name: str) -> None:
    path, _, variable = GRAPHS[name].partition(":")
    module = module_at(ROOT / path, f"opened_{name}")
    graph = getattr(module, variable)
    assert isinstance(graph, CompiledStateGraph)
    assert graph.get_name() == name
    assert graph.checkpointer is None, "the server brings its own"
    assert (module.__doc__ or "").startswith(f"`{name}`: ")


@pytest.mark.parametrize("name", GRAPHS)
def test_studio_is_told_what_goes_in_and_comes_out(name: str, drawings: ModuleType) -> None:
    _, graph = drawings.load(GRAPHS[name])
    assert "wave" in graph.get_input_jsonschema()["properties"]
    assert "wave" in graph.get_output_jsonschema()["properties"]
    assert graph.get_context_jsonschema() == {}


@pytest.mark.parametrize("name", GRAPHS)
def test_every_node_can_be_reached_and_says_what_it_does(name: str, drawings: ModuleType) -> None:
    module, graph = drawings.load(GRAPHS[name])
    drawn = graph.get_graph()
    assert {edge.target for edge in drawn.edges} | {"__start__"} == set(drawn.nodes)
    assert "|  |" not in drawings.section(name, module, graph)


def test_every_graph_of_the_house_is_listed() -> None:
    built = {path for path in (ROOT / "graphs").rglob("*.py") if "\ngraph = build()" in path.read_text("utf-8")}
    assert built == {ROOT / target.partition(":")[0] for target in GRAPHS.values()}


@pytest.mark.parametrize("name", GRAPHS)
async def test_a_graph_that_is_run_by_itself_says_how_it_is_run(name: str) -> None:
    path, variable = GRAPHS[name].split(":")
    graph: CompiledStateGraph[Any, Any, Any, Any] = getattr(module_at(ROOT / path, f"alone_{name}"), variable)
    with pytest.raises(WrongUse, match=r"no store, roles and conversations .* → run it by a command"):
        await graph.ainvoke({})
