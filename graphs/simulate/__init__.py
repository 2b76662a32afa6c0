"""The graph that simulates dialogues and asks about their quality."""
