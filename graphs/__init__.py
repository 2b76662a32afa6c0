"""How the work flows: one LangGraph graph a file."""
