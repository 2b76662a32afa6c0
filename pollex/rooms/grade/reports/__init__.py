"""Reports of the room `grade`."""
