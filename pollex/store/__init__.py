"""The store: SQLite for runs, paid calls and labels, Parquet for conversations and answers."""
