"""Usecases of the room `judge`."""
