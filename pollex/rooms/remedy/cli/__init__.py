"""The room `remedy` on the command line."""
