"""Questionnaires that a model answers, and what its answers say of people's: LLM-Rubric; see README.md."""

PYTHON_NAMES = {
    "ask": "usecases.ask.AskQuestionnaire",
    "calibrate": "services.calibrate.calibrate",
}
"""What `import pollex` has of the room, and where it is."""
