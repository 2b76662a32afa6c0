"""Processes that pollex starts: none imports a module from the current folder.

Python puts the current folder in front of all others for `-c` and `-m`, so that somebody's
`json.py` or `numpy.py` that lies there would be run. Of ours this module imports nothing, and every
room may import it.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

SAFE_PATH_VARIABLES = {"PYTHONSAFEPATH": "1"}
"""Has Python leave the current folder out, also in what a child starts."""


def make_safe_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment for a child, with more beside it."""
    return {**os.environ, **(more or {}), **SAFE_PATH_VARIABLES}


@contextmanager
def protect_children() -> Iterator[None]:
    """Have what is started until the block ends leave the current folder out, where a library starts it."""
    before = {name: os.environ.get(name) for name in SAFE_PATH_VARIABLES}
    os.environ.update(SAFE_PATH_VARIABLES)
    try:
        yield
    finally:
        # what wasn't set before is taken out again
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
