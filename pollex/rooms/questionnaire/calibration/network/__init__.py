"""Network of the room `questionnaire`."""
