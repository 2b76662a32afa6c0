"""How a model is reached: the one door, with ledger, limits, deadlines, retries, capability probe."""
