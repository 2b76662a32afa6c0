"""How well: every figure with its interval."""
