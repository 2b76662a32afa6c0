"""Services of the room `questionnaire`."""
