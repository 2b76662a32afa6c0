"""The four built-in roles (no LLM): MiniLM embeddings, conversation signals, contrastive phrases."""

BUILT_IN_MODEL_NAME = "built-in (no LLM)"
"""Display name of everything that works without a model."""
