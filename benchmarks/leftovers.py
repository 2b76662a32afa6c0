"""Processes of a pool that end when who started them does, however that came about."""

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """Ends this process as soon as its parent is gone; to be called first in it.

    A parent that a signal ends can tell its pool nothing, and the pool would go on waiting for
    work, or working.
    """
    threading.Thread(target=_end, daemon=True).start()


def _end() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
