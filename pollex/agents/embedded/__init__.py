"""The four built-in roles (no LLM): MiniLM embeddings, conversation signals, contrastive phrases."""

DEFAULT_MODEL = "all-MiniLM-L6-v2"
"""The bundled embedding model."""
