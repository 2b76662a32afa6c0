"""The four roles without an LLM, a network or a key: MiniLM embeddings, conversation signals, mined phrases."""
