"""Usecases of the room `grade`."""
