"""The fixtures of the small log."""

from small_runs import environment, learnt, pollex, store

__all__ = ["environment", "learnt", "pollex", "store"]
