"""Llm of the room `study`."""
