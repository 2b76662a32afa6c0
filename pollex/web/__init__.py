"""What people look at: the report."""
