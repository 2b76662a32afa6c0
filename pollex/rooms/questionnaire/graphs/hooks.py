"""The graph of the room."""

from pollex.graphs.hooks import RunGraph

HOOKS = (RunGraph("ask", "pollex.rooms.questionnaire.graphs.graph"),)
