"""The graph of the room, and what its stages are called for people."""

from pollex.graphs.hooks import RunGraph, StageNames

HOOKS = (
    RunGraph("remedy", "pollex.rooms.remedy.graphs.graph"),
    StageNames(
        {
            "gather": "Finding where it fails",
            "reproduce": "Asking today's prompt again",
            "headroom replies": "Asking today's prompt again",
            "propose": "Having changes proposed",
            "accept": "Waiting for your choice",
            "flatter": "Testing the judge",
            "flatter replies": "Testing the judge",
            "select": "Trying the proposals",
            "select replies": "Trying the proposals",
            "freeze": "Registering the proof",
            "prove": "Asking both prompts",
            "prove replies": "Asking both prompts",
            "look": "Looking at the replies",
            "compare": "Comparing pairs",
            "people": "Waiting for people",
            "finish": "Writing the verdict",
            "reply": "Replying",
        },
        command="remedy",
    ),
)
