"""The door for LangGraph Studio and its HTTP API."""
