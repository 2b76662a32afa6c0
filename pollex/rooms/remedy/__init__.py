"""Remedies: what to change in an assistant's prompt, and whether it helps; see README.md."""

PYTHON_NAMES = {
    "remedy": "usecases.remedy.ProveRemedy",
    "rubric_state": "usecases.rubrics.SetRubricState",
}
"""What `import pollex` has of the room, and where it is."""
