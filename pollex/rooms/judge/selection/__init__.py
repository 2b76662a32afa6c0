"""Selection of the room `judge`."""
