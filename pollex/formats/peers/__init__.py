"""Rubric sets, cases and scores in the forms of other tools."""
