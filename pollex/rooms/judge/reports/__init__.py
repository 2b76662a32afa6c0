"""Reports of the room `judge`."""
