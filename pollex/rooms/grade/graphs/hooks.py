"""The graphs of the room."""

from pollex.graphs.hooks import RunGraph

HOOKS = (
    RunGraph("answer", "pollex.rooms.grade.graphs.answer"),
    RunGraph("grade", "pollex.rooms.grade.graphs.graph"),
)
