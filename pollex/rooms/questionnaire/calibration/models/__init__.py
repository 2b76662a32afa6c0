"""Models of the room `questionnaire`."""
