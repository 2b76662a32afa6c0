"""The four roles on an LLM."""
