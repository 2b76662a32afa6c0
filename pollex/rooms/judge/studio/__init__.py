"""Studio of the room `judge`."""
