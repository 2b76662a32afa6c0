"""Web of the room `remedy`."""
