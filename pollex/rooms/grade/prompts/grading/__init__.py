"""Prompts and profiles for grading against references: scale, rules, dimensions."""
