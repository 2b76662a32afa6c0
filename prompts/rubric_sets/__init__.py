"""Rubrics that were written by hand, as plain files: what learnt ones are compared with."""
