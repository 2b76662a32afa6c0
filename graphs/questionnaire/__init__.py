"""The graph that asks a model a questionnaire about each conversation."""
