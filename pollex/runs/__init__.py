"""The machinery of runs: options, roles, workspace, plan; how a run begins, goes on and ends.

`pollex runs` is a verb, and each verb is a function of Python: called, this package lists what ran.
"""

import sys
from types import ModuleType


class _CallablePackage(ModuleType):
    def __call__(self, **options: object) -> object:
        """List all runs, the last one last; see `pollex.usecases.runs`."""
        return sys.modules["pollex"].__getattr__("runs")(**options)


sys.modules[__name__].__class__ = _CallablePackage
