"""Agents of the room `study`."""
