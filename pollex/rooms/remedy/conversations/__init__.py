"""Conversations of the room `remedy`."""
