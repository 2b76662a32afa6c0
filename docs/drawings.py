"""Draw every graph from the code into `docs/graphs.md`; `make docs` runs it."""

import argparse
import inspect
import json
from importlib import import_module
from pathlib import Path
from types import ModuleType

from langgraph.graph.state import CompiledStateGraph

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "graphs.md"
GRAPHS = {
    "learn": "graphs/learn/graph.py",
    "score": "graphs/score.py",
    "refit": "graphs/learn/refit.py",
    "spur": "graphs/learn/spur.py",
    "judge": "graphs/judge/graph.py",
    "answer": "graphs/grade/answer.py",
    "grade": "graphs/grade/graph.py",
    "ask": "graphs/questionnaire.py",
    "simulate": "graphs/simulate/graph.py",
    "remedy": "pollex/rooms/remedy/graphs/graph.py",
}
"""Files by the name of their graph, in the order of the page."""

OPENING = """\
# Graphs

`make docs` draws this page from the code. A solid arrow is always taken; of the dotted ones a node chooses.

Graphs are run by `pollex/services`, where a run is begun with what its nodes work with
(store, roles, progress); the context is what the user chose. A batch is asked inside one node. State tells how far a
run is, and in `learn` what each node came to; it is kept after each node in `checkpoints.sqlite` of the store, where a
thread is a run: `--resume` goes on from there. What was answered is in the store: a batch done again pays nothing.

## In LangGraph Studio
`langgraph.json` has `learn`, `spur`, `refit`, `score`, `judge`, `grade`, `answer`, `ask`, `simulate` and `remedy`
as drawn below. Their context is a form:
`logs`, `model`, `base_url`, `store` and options of the command under their names in Python; the key stays in the
environment. What is wrong with one is told with what to do. The state after each node says what was found: the first
results of a batch, the worst so far, means; in `learn` reasons, who answers a rubric, θ, and what it weighs.
With `review`, `learn` stops at `review_pool`: resume it with the pool's rows, edited, or
change `kept` in the state. A pool with a duplicate, an empty or a contradictory rubric is refused: the run waits on.

    pip install "pollex[studio]"
    export LANGGRAPH_CLI_NO_ANALYTICS=1 LANGGRAPH_NO_VERSION_CHECK=true      # without them the tool reports its use
    langgraph dev --no-browser --port 2024
    curl localhost:2024/runs/wait -H 'content-type: application/json' -d '{"assistant_id": "learn", "input": {},
      "context": {"logs": "examples/bikes.jsonl"}}'

Nodes of a run work in a thread and an event loop of their own, so the server stays free. A thread whose server was
started again goes on with the run that its state names. Who goes on from a state of a run that has ended forks it: a
new run begins, with the other as `parent`, which stays as it is. A set that was learned is in the store, whole:
`rubrics` takes the name of its run, its digest, or a file.
Studio itself is a page of LangChain's, opened in the browser; the server and what it is told stay on the machine. Runs
are kept in `.pollex`, or in the folder that `POLLEX_STORE` names.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([OPENING, *(section(name, *load(path)) for name, path in GRAPHS.items())])


def load(path: str) -> tuple[ModuleType, CompiledStateGraph]:
    """Import the module at a path, and return its graph, too."""
    inside = Path(path.removeprefix("pollex/")).with_suffix("")
    module = import_module(".".join(["pollex", *inside.parts]))
    return module, module.build().compile()


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


def drawn() -> dict[Path, str]:
    """Return the graphs of the core and of each room as JSON, for `pollex serve`, by file.

    Each has its nodes, and edges with whether a node chooses them.
    """
    graphs: dict[Path, dict[str, object]] = {}
    for name, path in GRAPHS.items():
        graph = load(path)[1].get_graph()
        graphs.setdefault(file_of(path), {})[name] = {
            "nodes": sorted(graph.nodes),
            "edges": sorted([edge.source, edge.target, edge.conditional] for edge in graph.edges),
        }
    return {file: json.dumps(of_room, indent=1) + "\n" for file, of_room in graphs.items()}


def file_of(path: str) -> Path:
    """Return the file that the server finds a graph's drawing in: that of its room, or the core's."""
    parts = Path(path).parts
    room = ROOT.joinpath(*parts[:3]) if parts[:2] == ("pollex", "rooms") else ROOT / "pollex"
    return room / "web" / "graphs.json"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    PAGE.write_text(page(), "utf-8")
    for file, text in drawn().items():
        file.write_text(text, "utf-8")
