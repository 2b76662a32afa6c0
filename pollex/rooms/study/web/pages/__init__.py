"""Pages of the room `study`."""
