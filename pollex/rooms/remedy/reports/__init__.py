"""Reports of the room `remedy`."""
