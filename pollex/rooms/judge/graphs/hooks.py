"""The graph of the room."""

from pollex.graphs.hooks import RunGraph

HOOKS = (RunGraph("judge", "pollex.rooms.judge.graphs.graph"),)
