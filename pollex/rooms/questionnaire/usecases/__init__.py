"""Usecases of the room `questionnaire`."""
