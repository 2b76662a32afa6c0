"""Usecases of the room `study`."""
