"""Usecases of the room `exchange`."""
