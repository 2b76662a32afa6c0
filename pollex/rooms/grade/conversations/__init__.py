"""Conversations of the room `grade`."""
