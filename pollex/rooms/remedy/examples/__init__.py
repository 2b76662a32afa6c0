"""Examples of the room `remedy`."""
