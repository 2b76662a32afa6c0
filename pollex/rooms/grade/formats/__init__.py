"""Formats of the room `grade`."""
