"""Cli of the room `exchange`."""
