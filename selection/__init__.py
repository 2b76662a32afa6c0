"""Which rubrics stay: losses, policies, threshold and uncertainty window, metrics."""
