"""Rubrics that were written by hand, as plain files: what learned ones are compared with."""
