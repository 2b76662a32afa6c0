"""One question about each conversation, asked in several independent runs, and people; see README.md."""

PYTHON_NAMES = {"judge": "usecases.judge.JudgeLogs", "review": "usecases.review.ReviewRun"}
"""What `import pollex` has of the room, and where it is."""
