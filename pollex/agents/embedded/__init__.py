"""The four roles without an LLM, a network or a key: MiniLM embeddings, conversation signals, mined phrases."""

DEFAULT_MODEL = "all-MiniLM-L6-v2"
"""The bundled embedding model."""
