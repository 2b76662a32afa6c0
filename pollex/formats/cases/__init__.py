"""Regression cases at the turn that failed, in the forms of tools that run them."""
