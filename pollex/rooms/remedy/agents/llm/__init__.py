"""Llm of the room `remedy`."""
