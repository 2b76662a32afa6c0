"""The four roles on an LLM: prompts, parsing of answers, and checks of both."""
