"""Peers of the room `exchange`."""
