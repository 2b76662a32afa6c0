"""What one can do: one module a use case, which prints nothing."""
