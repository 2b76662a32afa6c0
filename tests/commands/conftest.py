"""The fixtures of the small log."""

from __future__ import annotations

from small_runs import learnt, pollex, store

__all__ = ["learnt", "pollex", "store"]
