"""The fixtures of the small log."""

from __future__ import annotations

from small_runs import environment, learnt, pollex, store

__all__ = ["environment", "learnt", "pollex", "store"]
