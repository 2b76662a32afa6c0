"""Simulated dialogues, and studies in which people talk to systems; see README.md."""

PYTHON_NAMES = {"simulate": "usecases.simulate.SimulateDialogues"}
"""What `import pollex` has of the room, and where it is."""
