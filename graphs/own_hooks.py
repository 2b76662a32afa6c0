"""The graphs of the core's commands."""

from pollex.graphs.hooks import RunGraph

HOOKS = (
    RunGraph("learn", "pollex.graphs.learn.graph"),
    RunGraph("refit", "pollex.graphs.learn.refit"),
)
"""Those of `score` and of what scores are not named."""
