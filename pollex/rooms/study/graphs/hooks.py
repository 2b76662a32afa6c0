"""The graph of the room, and what its stages are called for people."""

from pollex.graphs.hooks import RunGraph, StageNames

HOOKS = (
    RunGraph("simulate", "pollex.rooms.study.graphs.graph"),
    StageNames(
        {
            "simulate": "Simulating dialogues",
            "converse": "Simulating dialogues",
            "check_quality": "Checking their quality",
            "simulate_whole": "Writing whole dialogues",
            "simulate_query": "Writing first questions",
            "simulate_user": "Writing the user's turns",
            "simulate_assistant": "Writing the assistant's turns",
            "simulate_quality": "Checking their quality",
            "talk": "Talking",
        },
        command="simulate",
    ),
)
