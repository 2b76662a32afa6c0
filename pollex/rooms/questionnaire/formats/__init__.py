"""Formats of the room `questionnaire`."""
