"""Whether this machine and this user wrote something into a store: whoever handed the store on may have written it.

A store is data, and a token or a folder to look at in it would be an order. What is believed as one
carries a seal. Its key is made of a file of the store and of what no copy of that file has: the
time of its last change, which nobody can set, its number on the disk, this machine and this user.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from pollex.store.folder import require_own

ANCHOR = "seal"
"""File of a store with random bytes, to which what is sealed is bound."""
BYTES = 32
SEALED_BY = "sealed"
"""Field of a JSON object with its seal."""
LARGEST = 16 << 20
MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
PATIENCE_SECONDS = 0.2
"""For another process that is just writing the file."""
KEY_OF_THIS_PROCESS = secrets.token_bytes(BYTES)
"""Where a store can't be written: what it seals holds until this process ends."""


@dataclass(frozen=True)
class Seal:
    """What this machine and this user sign with in one store."""

    key: bytes = field(default=KEY_OF_THIS_PROCESS, repr=False)

    @classmethod
    def of(cls, folder: Path) -> Seal:
        """Return the seal of a store; a new one where the store was copied or is a stranger's."""
        path = folder / ANCHOR
        require_own(path)
        try:
            return cls(_key_of(path))
        # a folder that can't be written, or isn't there
        except OSError:
            return cls()

    @property
    def name(self) -> str:
        """Tells one seal from another, and nothing of the key."""
        return self.sign("name", "")[:12]

    def sign(self, kind: str, text: str) -> str:
        """Return the seal of a text.

        Args:
            kind: What it is, so that none stands for another.
        """
        content = f"{kind}\0{text}".encode("utf-8", "surrogatepass")
        return hmac.new(self.key, content, sha256).hexdigest()

    def sign_fields(self, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return JSON fields with their seal among them."""
        return {**fields, SEALED_BY: self.sign(kind, _written(fields))}

    def read_fields(self, kind: str, path: Path) -> dict[str, Any] | None:
        """Return the fields of a file; None where it isn't there, is damaged, or was not sealed here."""
        fields = read_object(path)
        if fields is None:
            return None

        given_seal = fields.pop(SEALED_BY, None)
        if not isinstance(given_seal, str):
            return None

        seal = self.sign(kind, _written(fields))
        if hmac.compare_digest(seal.encode(), given_seal.encode("utf-8", "surrogatepass")):
            return fields
        return None


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the JSON object of a file of a store; None where there is none, whatever stands there."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        return None

    return content if isinstance(content, dict) else None


def _written(fields: Mapping[str, Any]) -> str:
    """Return fields in one form, the same before they are written and after they were read."""
    return json.dumps(fields, sort_keys=True, default=str)


def _key_of(path: Path) -> bytes:
    """Return the key that a file gives here, which is made where it isn't there yet."""
    with suppress(FileExistsError):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(opened, "wb") as file:
            file.write(secrets.token_bytes(BYTES))
            file.flush()
            os.fsync(file.fileno())

    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        # content and time are those of the same file, also where it is replaced meanwhile
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            content = file.read(BYTES)
            about = os.fstat(file.fileno())

        if len(content) == BYTES:
            break
        if time.monotonic() > until:  # it was cut short: another one takes its place
            path.unlink()
            return _key_of(path)
        time.sleep(0.01)

    bound_to = f"{_machine()}\0{os.getuid()}\0{about.st_ino}\0{about.st_ctime_ns}"
    return hmac.new(content, bound_to.encode(), sha256).digest()


@cache
def _machine() -> str:
    """Return what names this machine; empty where it has no such name, as in some containers."""
    for path in MACHINE_IDS:
        with suppress(OSError, ValueError):
            if name := path.read_text("ascii").strip():
                return name

    return ""
