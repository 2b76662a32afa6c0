"""The room in the browser."""
