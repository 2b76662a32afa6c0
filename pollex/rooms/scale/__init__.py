"""Scoring at scale: engines, a service, and a judge taught by a model; see README.md."""

PYTHON_NAMES = {
    "distill": "usecases.distill.DistillSet",
    "score_dataset": "services.datasets.score_dataset",
}
"""What `import pollex` has of the room, and where it is."""
