"""The set of the small log."""

from __future__ import annotations

from small_runs import learnt

__all__ = ["learnt"]
