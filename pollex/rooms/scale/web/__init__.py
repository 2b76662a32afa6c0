"""Web of the room `scale`."""
