"""Draws every graph of `langgraph.json` from the code into `docs/graphs.md`; `make docs` runs it."""

from __future__ import annotations

import inspect
import json
from importlib import import_module
from pathlib import Path
from types import ModuleType

from langgraph.graph.state import CompiledStateGraph

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "graphs.md"

OPENING = """\
# Graphs

`make docs` draws this page from the code. A solid arrow is always taken; of the dotted ones a node chooses, and to a
node that works on one conversation it sends as many tasks as the wave has conversations.

Graphs are run by the functions of the `run.py` beside each, which begin the run and give the
nodes what they work with (`context=`: store, roles, progress). Opened by themselves, as `langgraph.json` has them, they
can be looked at. State holds ids; all else is in the store, which resumes a run: only waiting for people takes a
checkpointer.
"""


def page() -> str:
    """The whole page, in the order of `langgraph.json`."""
    targets = json.loads((ROOT / "langgraph.json").read_text("utf-8"))["graphs"]
    return "\n".join([OPENING, *(section(name, *load(target)) for name, target in targets.items())])


def load(target: str) -> tuple[ModuleType, CompiledStateGraph]:
    """The module and the graph that `./path/to/file.py:name` means."""
    path, _, name = target.partition(":")
    module = import_module(".".join(["pollex", *Path(path).with_suffix("").parts]))
    return module, getattr(module, name)


def section(name: str, module: ModuleType, graph: CompiledStateGraph) -> str:
    """One graph: what it does, its drawing, what each node does."""
    drawing = graph.get_graph().draw_mermaid(with_styles=False).replace("\t", "    ").strip()
    rows = [f"| `{node}` | {summary(part.runnable.afunc or part.runnable.func)} |"
            for node, part in graph.builder.nodes.items()]  # fmt: skip
    table = "\n".join(["| node | what it does |", "|---|---|", *rows])
    return f"## {name}\n{summary(module)}\n\n```mermaid\n{drawing}\n```\n\n{table}\n"


def summary(thing: object) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
