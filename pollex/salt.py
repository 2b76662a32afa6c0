"""A store's secret, which boundaries around data are made from."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

SALT = "salt"
"""File of the secret in a store. What is made from it is part of what a paid call is known by."""


def kept_salt(folder: Path) -> bytes | None:
    """The store's secret; None where there is none yet."""
    path = folder / SALT
    return path.read_bytes() if path.exists() else None


def salt_of(folder: Path) -> bytes:
    """The store's secret, made when it is first needed."""
    path = folder / SALT
    if not path.exists():
        draft = path.with_name(f".{SALT}.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_bytes(secrets.token_bytes(32))
        draft.replace(path)
    return path.read_bytes()
