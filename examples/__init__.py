"""Sample logs, and a graph that knows its own score."""
