"""Services of the room `exchange`."""
