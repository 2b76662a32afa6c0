"""Pages of the room `remedy`."""
