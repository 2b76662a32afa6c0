"""Tables of answers and of judgments as people have them: one file a format."""
