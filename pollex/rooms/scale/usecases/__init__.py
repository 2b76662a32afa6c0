"""Usecases of the room `scale`."""
