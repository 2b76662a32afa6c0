"""Measures of quality, each figure with its interval."""
