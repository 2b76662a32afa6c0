"""Web of the room `judge`."""
