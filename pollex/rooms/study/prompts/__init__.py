"""Prompts of the room `study`."""
