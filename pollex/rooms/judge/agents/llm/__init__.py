"""Llm of the room `judge`."""
