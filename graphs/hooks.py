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
