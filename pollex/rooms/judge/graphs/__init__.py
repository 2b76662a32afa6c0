"""The graph that asks one question in several runs."""
