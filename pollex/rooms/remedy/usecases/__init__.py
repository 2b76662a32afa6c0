"""Usecases of the room `remedy`."""
