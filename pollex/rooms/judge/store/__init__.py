"""Store of the room `judge`."""
