"""The graph of the room, and what its stages are called for people."""

from pollex.graphs.hooks import RunGraph, StageNames

HOOKS = (
    RunGraph("ask", "pollex.rooms.questionnaire.graphs.graph"),
    StageNames(
        {
            "ask": "Asking the questions",
            "ask_questions": "Asking the questions",
            "predict": "Predicting",
        },
        command="ask",
    ),
)
