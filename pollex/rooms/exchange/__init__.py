"""What goes to other tools and comes from them; see README.md."""

PYTHON_NAMES = {
    "export_rubrics": "api.exports.export_rubrics",
    "export_scores": "api.exports.export_scores",
}
"""What `import pollex` has of the room, and where it is."""
