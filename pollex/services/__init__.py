"""The use cases, one module each; they print nothing."""
