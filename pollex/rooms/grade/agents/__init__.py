"""Agents of the room `grade`."""
