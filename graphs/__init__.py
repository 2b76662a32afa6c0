"""The order of the work: one LangGraph graph in each file."""

if not __name__.startswith("pollex."):
    raise ImportError("this folder is the package pollex.graphs: import pollex.graphs")
