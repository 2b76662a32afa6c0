"""The graph of the room, and what its stages are called for people."""

from pollex.graphs.hooks import RunGraph, StageNames

HOOKS = (
    RunGraph("judge", "pollex.rooms.judge.graphs.graph"),
    StageNames(
        {
            "judge": "Asking the runs",
            "ask_runs": "Asking the runs",
            "fit_rule": "Fitting the rule",
            "human_review": "Waiting for people",
            "apply_review": "Taking up people's answers",
        },
        command="judge",
    ),
)
