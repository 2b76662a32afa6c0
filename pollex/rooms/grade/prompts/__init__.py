"""Prompts of the room `grade`."""
