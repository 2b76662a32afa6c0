"""Services of the room `scale`."""
