"""Functions of the room `exchange`."""
