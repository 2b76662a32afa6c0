"""Agents of the room `remedy`."""
