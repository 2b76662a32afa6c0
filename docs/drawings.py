"""Draw every graph and the floor plan from the code into `docs`; `make docs` runs it."""

import argparse
import ast
import inspect
import json
from importlib import import_module
from pathlib import Path
from types import ModuleType

from langgraph.graph.state import CompiledStateGraph

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "graphs.md"
PLAN = ROOT / "docs" / "architecture.md"
HOUSE = ROOT / "pollex"
GRAPHS = {
    "learn": "graphs/learn/graph.py",
    "score": "graphs/score.py",
    "refit": "graphs/learn/refit.py",
    "spur": "graphs/learn/spur.py",
    "judge": "pollex/rooms/judge/graphs/graph.py",
    "answer": "pollex/rooms/grade/graphs/answer.py",
    "grade": "pollex/rooms/grade/graphs/graph.py",
    "ask": "pollex/rooms/questionnaire/graphs/graph.py",
    "simulate": "pollex/rooms/study/graphs/graph.py",
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


PLAN_TEXT = """\
# Architecture

pollex is a core and rooms. The core learns rubrics from thumbs and scores conversations with them; a room is a
capability beside it, which a reader of the core never needs. Each is a folder with the same floor plan, so that a thing
is found by what it is:

| what | where |
|---|---|
| a verb of the command line and a function of `import pollex` | `usecases/`: one class, whose fields are the options |
| what a verb does | `services/`: reads logs, hires roles, runs a graph, returns a result; prints nothing |
| the order of its steps | `graphs/`: one LangGraph graph, whose nodes own no algorithm |
| a role that works in it, built-in or on a model | `agents/`, with its prompt in `prompts/` |
| what is learned, chosen and calibrated | `rubrics/`, `selection/`, `calibration/` |
| figures and their intervals | `measures/` |
| files that come in and go out | `formats/` |
| what is kept | `store/` |
| what every run works with: its options, roles, workspace and plan of calls | `runs/` |
| pages | `reports/` (files), `web/pages/` (the browser), `templates/` |

A log becomes conversations (`formats/`, `conversations/`); `services/learn.py` runs `graphs/learn`; the rubric set that
it makes (`rubrics/rubric_set.py`) scores conversations in `services/score.py`. Calls of models go through
`gateway/`, and every step is kept in `store/`. CONTRIBUTING says which folder may import which.

## Where to look

| question | file |
|---|---|
| how is a tool's export read? | `formats/log_shapes/tools.toml`, and a module beside it |
| when does a label count as up or down? | `formats/labels.py` |
| who is the user that a conversation belongs to? | found in `formats/users.py`, grouped in `formats/read_logs.py` |
| what happens in a turn, without a model? | `agents/embedded/events/` |
| with which words is a model asked about rubrics? | `prompts/judge_batch.md`, one by one `judge_question.md` |
| how are rubrics chosen? | `selection/policies/`, walked by `selection/pool.py` |
| where is NetSAT added up? | `selection/netsat.py`, in learning and in scoring |
| where does the window of doubt begin and end? | `selection/threshold.py` |
| how is the probability's network trained? | `calibration/thumbs.py`, then `calibration/network/begun.py` |
| where is a paid answer found again? | of a rubric in `agents/llm/judge.py`, of a call in `store/ledger.py` |
| what is proven, likely or a hint? | `rubrics/worth.py`, `rubrics/learning/choice.py` |
| how do several votes of a judge become one? | `rooms/judge/selection/consensus.py` (RoboRater's diversity entropy) |
| with which words are answers graded? | `rooms/grade/prompts/grading/` |
| how does a run of `learn` begin? | `services/learn.py` hires and asks, `runs/learn_runs.py` begins it in the store |
| how does an interrupted run go on? | found in `store/resume.py`, carried out in `graphs/run.py` |
| who makes the report? | `reports/learning.py`, `reports/templates/learning.html` |
| what may a coding agent ask? | the room `exchange`: `services/agent_tools.py` |
| how does a package of your own add a verb? | [a room of your own](how-to/your-own-room.md) |
| what does a remedy's page advise? | `rooms/remedy/measures/advice.py` |
| what may be hung onto a verb's option, a trace, a run's page? | the table of hooks below |
| what does forgetting rewrite? | `services/forget.py`, inside a file `services/forgetting_files.py` |

## Rooms
A room (`pollex/rooms/NAME`, its tests in `tests/rooms/NAME`) imports the core. The core imports no room, and no room
imports another: a room can be taken away as a folder, or come from another package by the entry point `pollex.rooms`.
The core asks all rooms by `pollex/rooms/__init__.py`: for files in their places (verbs, pages, prompts, templates), and
for hooks, which are classes in a module `hooks` of the core.

What `learn` needs of LLM-Rubric stays in `calibration/`: the network, its training, what it begins as, and how
calibrators are kept. The room `questionnaire` has what tables of a judge's answers need beside it. Providers' batches
stay in `gateway/batches/`, since `learn`, `score`, and two rooms wait for them (`--batch`); a cascade is a step of
`score`. Readers of tools' exports stay in `formats/log_shapes/`, since every verb reads logs by them.

HOOKS

## Who imports whom
`make docs` draws this from the imports. An arrow leads from a folder to what it imports; where one leads there by way
of another, the direct one is left out.

```mermaid
DRAWING
```
"""


def plan() -> str:
    """Return the page on the floor plan."""
    hooks = "\n".join(["| hook | what hangs there |", "|---|---|", *hook_rows()])
    return PLAN_TEXT.replace("HOOKS", hooks).replace("DRAWING", drawn_plan())


def hook_rows() -> list[str]:
    """Return a row for each hook of the core."""
    rows = []
    for file in sorted(HOUSE.glob("*/hooks.py")):
        part = file.parent.name
        module = import_module(f"pollex.{part}.hooks")
        hung = sorted({hung_class.__name__ for hung_class in hooks_in(module)})
        rows += [
            f"| `{part}/hooks.py`: `{name}` | {summary(getattr(module, name))} |" for name in hung
        ]
    return rows


def hooks_in(module: ModuleType) -> list[type]:
    """Return the classes that a module of hooks declares for rooms: those that `list_hooks` is asked for."""
    asked_for = {
        node.args[0].id
        for folder in (HOUSE, ROOT / "graphs", ROOT / "calibration")
        for file in folder.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "list_hooks"
        and isinstance(node.args[0], ast.Name)
    }
    return [
        member
        for name, member in vars(module).items()
        if name in asked_for and member.__module__ == module.__name__
    ]


def drawn_plan() -> str:
    """Return the drawing: folders of the core, rooms, and who imports whom."""
    imports = {place: imported_by(place) for place in places()}
    lines = ["graph TD"]
    lines += [f'    {place.replace(".", "_")}["{label(place)}"]' for place in imports]
    for place, known in imports.items():
        beyond = {further for other in known for further in reached(other, imports) - {other}}
        lines += [
            f"    {place.replace('.', '_')} --> {other.replace('.', '_')}"
            for other in sorted(known - beyond)
        ]
    return "\n".join(lines)


def places() -> list[str]:
    """Return the folders of the core, and the rooms."""
    core = [folder.name for folder in sorted(HOUSE.iterdir()) if (folder / "__init__.py").is_file()]
    rooms = [file.parent.name for file in sorted((HOUSE / "rooms").glob("*/__init__.py"))]
    return [*(name for name in core if name != "rooms"), *(f"rooms.{name}" for name in rooms)]


def label(place: str) -> str:
    """Return what stands in a box."""
    return f"room {place.partition('.')[2]}" if place.startswith("rooms.") else place


def imported_by(place: str) -> set[str]:
    """Return the other places that the modules of one import."""
    folder = HOUSE.joinpath(*place.split(".")).resolve()
    names = {
        name
        for file in folder.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module
        for name in [node.module]
    }
    inside = [name.split(".")[1:] for name in names if name.startswith("pollex.")]
    imported = {".".join(parts[:2]) if parts[0] == "rooms" else parts[0] for parts in inside}
    return (imported & set(places())) - {place}


def reached(place: str, imports: dict[str, set[str]]) -> set[str]:
    """Return every place that one leads to, itself too."""
    there = {place}
    waiting = [place]
    while waiting:
        new = imports[waiting.pop()] - there
        there |= new
        waiting += new
    return there


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    PAGE.write_text(page(), "utf-8")
    PLAN.write_text(plan(), "utf-8")
    for file, text in drawn().items():
        file.write_text(text, "utf-8")
