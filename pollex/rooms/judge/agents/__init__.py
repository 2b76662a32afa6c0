"""Agents of the room `judge`."""
