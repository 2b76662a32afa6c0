"""Formats of the room `exchange`."""
