"""What is kept: DuckDB schema, runs, answers, LLM call ledger, traces."""
