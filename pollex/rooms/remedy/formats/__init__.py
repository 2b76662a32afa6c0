"""Formats of the room `remedy`."""
