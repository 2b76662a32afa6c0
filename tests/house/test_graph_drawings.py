"""`docs/graphs.md` shows every graph as it is, and `langgraph.json` has those that a context can be given."""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from langgraph.graph.state import CompiledStateGraph
from rooms import ROOT

from pollex.errors import WrongUse

SERVED: dict[str, str] = json.loads((ROOT / "langgraph.json").read_text("utf-8"))["graphs"]


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


def test_the_page_on_the_floor_plan_is_as_the_imports_are(drawings: ModuleType) -> None:
    assert drawings.PLAN.read_text("utf-8") == drawings.plan(), "run `make docs`"


def test_the_server_draws_the_graphs_as_they_are(drawings: ModuleType) -> None:
    drawn = drawings.drawn()
    assert {file: file.read_text("utf-8") for file in drawn} == drawn, "run `make docs`"


@pytest.mark.parametrize("name", SERVED)
def test_every_graph_that_is_served_is_compiled_and_shows_its_context_as_a_form(name: str) -> None:
    path, _, variable = SERVED[name].partition(":")
    graph = getattr(module_at(ROOT / path, f"served_{name}"), variable)
    assert isinstance(graph, CompiledStateGraph)
    assert graph.get_name() == name
    assert graph.checkpointer is None, "the server brings its own"
    form = graph.get_context_jsonschema()
    assert form is not None
    assert {"model", "base_url", "store"} < form["properties"].keys()


def test_every_node_can_be_reached_and_says_what_it_does(drawings: ModuleType) -> None:
    for name, path in drawings.GRAPHS.items():
        module, graph = drawings.load(path)
        drawn = graph.get_graph()
        assert {edge.target for edge in drawn.edges} | {"__start__"} == set(drawn.nodes)
        assert "|  |" not in drawings.section(name, module, graph)
        assert (module.__doc__ or "").startswith(f"`{name}`: ")


def test_every_graph_of_the_house_is_drawn(drawings: ModuleType) -> None:
    built = {
        path
        for folder in (ROOT / "graphs", *(ROOT / "pollex" / "rooms").glob("*/graphs"))
        for path in folder.rglob("*.py")
        if "\ndef build()" in path.read_text("utf-8")
    }
    assert built == {ROOT / path for path in drawings.GRAPHS.values()}


async def test_a_graph_that_is_run_by_itself_says_how_it_is_run(drawings: ModuleType) -> None:
    for path in drawings.GRAPHS.values():
        _, graph = drawings.load(path)
        with pytest.raises(
            WrongUse, match=r"no store, roles and conversations .* → run it by a command"
        ):
            await graph.ainvoke({})
