"""What a room hangs into the runs of graphs: it names them in its own `graphs/hooks.py`, as `HOOKS`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RunGraph:
    """The graph that carries out the runs of a command.

    Attributes:
        module: Full name of the module, whose function `build` makes the graph.
    """

    command: str
    module: str


HOOKS = (
    RunGraph("learn", "pollex.graphs.learn.graph"),
    RunGraph("refit", "pollex.graphs.learn.refit"),
    RunGraph("answer", "pollex.graphs.grade.answer"),
    RunGraph("grade", "pollex.graphs.grade.graph"),
    RunGraph("ask", "pollex.graphs.questionnaire"),
    RunGraph("judge", "pollex.graphs.judge.graph"),
    RunGraph("simulate", "pollex.graphs.simulate.graph"),
)
"""Those of `score` and of what scores are not named."""
