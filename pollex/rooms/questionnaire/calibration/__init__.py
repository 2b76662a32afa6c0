"""Calibration of the room `questionnaire`."""
