"""Formats of the room `study`."""
