"""Studio of the room `study`."""
