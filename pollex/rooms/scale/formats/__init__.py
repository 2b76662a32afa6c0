"""Formats of the room `scale`."""
