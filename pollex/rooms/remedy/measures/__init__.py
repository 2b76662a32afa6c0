"""Measures of the room `remedy`."""
