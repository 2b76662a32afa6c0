"""The four roles on an LLM: what is asked, what an answer is taken to mean, and what is not believed."""
