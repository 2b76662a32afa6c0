"""A store's secret, which boundaries around data are made from."""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from pollex.errors import StoreDamaged
from pollex.store.journal import sync_folder

if TYPE_CHECKING:
    from pollex.store.store import Store


SALT = "salt"
"""File of the secret in a store. What is made from it is part of what a paid call is known by."""

SIZE = 32
CHECKED = 8
"""Bytes of the secret's own hash behind it; stores of before have the secret alone."""

REMEDY = (
    "put back the file that belongs there; without it take another folder with --store, and everything is asked anew"
)


def kept_salt(folder: Path) -> bytes | None:
    """The store's secret; None where there is none yet.

    Raises:
        StoreDamaged: It isn't what was written: another would neither find what is paid for nor be a secret.
    """
    path = folder / SALT
    if not path.exists():
        return None
    content = path.read_bytes()
    salt, check = content[:SIZE], content[SIZE:]
    if len(salt) < SIZE or check not in (b"", _check(salt)):
        raise StoreDamaged(
            "the store's secret was changed, by which it finds paid answers", where=str(path), remedy=REMEDY
        )
    return salt


def salt_of(store: Store) -> bytes:
    """The store's secret, made when it is first needed.

    Raises:
        StoreDamaged: It was changed, or is gone while there are answers that it finds.
    """
    if (salt := kept_salt(store.folder)) is not None:
        return salt
    path = store.folder / SALT
    if len(store.calls):
        what = f"the store's secret is gone, by which it finds its {len(store.calls)} paid answers"
        raise StoreDamaged(what, where=str(path), remedy=REMEDY)
    salt = secrets.token_bytes(SIZE)
    draft = path.with_name(f".{SALT}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(salt + _check(salt))
        file.flush()
        os.fsync(file.fileno())  # answers that are found by it will be on the disk, too
    draft.replace(path)
    sync_folder(store.folder)
    return salt


def _check(salt: bytes) -> bytes:
    return hashlib.sha256(salt).digest()[:CHECKED]
