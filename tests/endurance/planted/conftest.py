"""The fixture that runs commands in this process."""

from small_runs import environment, pollex

__all__ = ["environment", "pollex"]
