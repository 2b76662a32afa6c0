"""Formats of the room `judge`."""
