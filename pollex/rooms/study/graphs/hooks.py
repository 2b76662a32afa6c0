"""The graph of the room."""

from pollex.graphs.hooks import RunGraph

HOOKS = (RunGraph("simulate", "pollex.rooms.study.graphs.graph"),)
