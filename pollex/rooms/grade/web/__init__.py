"""Pages of the room `grade`."""
