"""The roles of a run: extractor, summarizer, deduplicator, judges; on an LLM or built-in."""
