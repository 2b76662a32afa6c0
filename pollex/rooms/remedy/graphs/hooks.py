"""The graph of the room."""

from pollex.graphs.hooks import RunGraph

HOOKS = (RunGraph("remedy", "pollex.rooms.remedy.graphs.graph"),)
