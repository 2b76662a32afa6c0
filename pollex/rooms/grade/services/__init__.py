"""Services of the room `grade`."""
