"""The set of the small log."""

from small_runs import learnt

__all__ = ["learnt"]
