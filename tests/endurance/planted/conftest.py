"""The fixture that runs commands in this process."""

from __future__ import annotations

from small_runs import environment, pollex

__all__ = ["environment", "pollex"]
