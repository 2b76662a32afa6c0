"""From labelled conversations to a rubric set."""
