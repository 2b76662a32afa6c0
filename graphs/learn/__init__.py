"""The graph from labeled conversations to a rubric set."""
