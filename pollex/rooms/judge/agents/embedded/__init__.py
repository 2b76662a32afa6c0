"""Embedded of the room `judge`."""
