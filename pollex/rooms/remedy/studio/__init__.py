"""The graph of the room `remedy` in LangGraph Studio."""
