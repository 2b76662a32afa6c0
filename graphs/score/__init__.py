"""The graph that scores conversations."""
