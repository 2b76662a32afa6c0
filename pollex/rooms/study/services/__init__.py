"""Services of the room `study`."""
