"""Web of the room `study`."""
