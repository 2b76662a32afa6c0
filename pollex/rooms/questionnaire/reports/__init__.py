"""Reports of the room `questionnaire`."""
