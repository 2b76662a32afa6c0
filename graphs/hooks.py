"""What a room hangs into the runs of graphs: it names them in its own `graphs/hooks.py`, as `HOOKS`."""

from collections.abc import Mapping
from dataclasses import dataclass

from pollex.rooms import list_core_hooks, list_hooks


@dataclass(frozen=True)
class RunGraph:
    """The graph that carries out the runs of a command.

    Attributes:
        module: Full name of the module, whose function `build` makes the graph.
    """

    command: str
    module: str


@dataclass(frozen=True)
class StageNames:
    """What stages of runs, and nodes of their graphs, are called for people.

    Attributes:
        names: By the stage or node.
        command: Of the runs that have them; empty for those that runs of several commands have.
    """

    names: Mapping[str, str]
    command: str = ""


def name_stage(stage: str, command: str = "") -> str:
    """Return what people call a stage, or a node; itself where it has no name of its own.

    Args:
        command: Of its run; empty where that isn't known.
    """
    # a bar of the terminal knows no command, and most are the core's: then no room is imported
    if not command:
        for hook in list_core_hooks(StageNames):
            if not hook.command and stage in hook.names:
                return hook.names[stage]

    hooks: tuple[StageNames, ...] = list_hooks(StageNames)
    # names of the command come before those that are the same everywhere, and others' are the last
    for wanted in ({command}, {""}, {hook.command for hook in hooks} if not command else set()):
        for hook in hooks:
            if hook.command in wanted and stage in hook.names:
                return hook.names[stage]

    return stage
