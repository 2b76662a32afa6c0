"""Services of the room `judge`."""
