"""Graphs of the room `questionnaire`."""
