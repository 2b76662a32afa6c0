"""The graphs that answer questions and grade answers against references."""
