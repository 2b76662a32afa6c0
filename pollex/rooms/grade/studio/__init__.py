"""Studio of the room `grade`."""
