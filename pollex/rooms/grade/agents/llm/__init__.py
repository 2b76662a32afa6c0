"""Llm of the room `grade`."""
