"""A store's secret, which boundaries around data are made from: part of what a paid call is known by."""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

from pollex.errors import StoreDamaged, WrongUse

FILE = "secret"
SIZE = 32
CHECKED = 8
"""Bytes of the secret's own hash behind it."""

REMEDY = (
    "put back the file that belongs there; without it take another folder with --store, and everything is asked anew"
)


def kept_secret(folder: Path) -> bytes | None:
    """Return the store's secret; None where there is none yet.

    Raises:
        StoreDamaged: It isn't what was written: another would neither find what is paid for nor be a secret.
    """
    path = folder / FILE
    if not path.exists():
        return None
    content = path.read_bytes()
    secret, check = content[:SIZE], content[SIZE:]
    if len(secret) < SIZE or check != _check(secret):
        what = "the store's secret was changed, by which it finds paid answers"
        raise StoreDamaged(what, where=str(path), remedy=REMEDY)
    return secret


def keep_secret(folder: Path, given: bytes | None, paid: int) -> bytes:
    """Return the store's secret, written down where there is none yet.

    Args:
        given: The secret of another store whose replies are to be found here; None: any will do.
        paid: How many paid answers the store has.

    Raises:
        StoreDamaged: It was changed, or is gone while there are answers that it finds.
        WrongUse: The store has another secret than the one given, or it is too short.
    """
    kept = kept_secret(folder)
    if given is not None and len(given) != SIZE:
        raise WrongUse(f"a secret has {SIZE} bytes, not {len(given)}", remedy="give that of a store")
    if kept is not None:
        if given not in (None, kept):
            raise WrongUse("the store has another secret than the one given", where=str(folder), remedy="name another")
        return kept
    path = folder / FILE
    if paid and given is None:
        what = f"the store's secret is gone, by which it finds its {paid} paid answers"
        raise StoreDamaged(what, where=str(path), remedy=REMEDY)
    return _written(path, given or secrets.token_bytes(SIZE))


def _written(path: Path, secret: bytes) -> bytes:
    """Write the secret unless another process was quicker; return the one that stands there."""
    draft = path.with_name(f".{FILE}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(secret + _check(secret))
        file.flush()
        os.fsync(file.fileno())  # answers that are found by it will be on the disk, too
    try:
        os.link(draft, path)
    except FileExistsError:
        return kept_secret(path.parent) or secret
    finally:
        draft.unlink()
    return secret


def _check(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()[:CHECKED]
