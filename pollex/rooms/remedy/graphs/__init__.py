"""The graph that proves a change of the assistant's prompt."""
