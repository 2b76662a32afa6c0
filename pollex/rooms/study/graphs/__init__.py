"""The graph that simulates dialogues and asks about their quality."""

SIMULATED_RECORD_NAME = (
    "simulated"  # where the conversations, and so any labels of theirs, come from
)
