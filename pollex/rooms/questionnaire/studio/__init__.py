"""The room in LangGraph Studio."""
