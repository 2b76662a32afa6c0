"""The order of the work: one LangGraph graph in each file."""
