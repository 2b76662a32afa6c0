"""Pages of the room `judge`."""
