"""Who does the work: extractor, summariser, deduplicator, judges; each on an LLM or embedded."""
