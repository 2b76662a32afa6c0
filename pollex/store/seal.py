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

from pollex.store.folder import SEAL_KEY_FILE_NAME, require_plain_path

SEAL_KEY_BYTES = 32
SEAL_FIELD = "sealed"
"""Field of a JSON object with its seal."""
MAX_SEALED_FILE_BYTES = 16 << 20
MACHINE_ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
MAX_WAIT_FOR_KEY_SECONDS = 0.2
"""For another process that is just writing the file."""
PROCESS_SEAL_KEY = secrets.token_bytes(SEAL_KEY_BYTES)
"""Where a store can't be written: what it seals holds until this process ends."""


@dataclass(frozen=True)
class Seal:
    """What this machine and this user sign with in one store."""

    key: bytes = field(default=PROCESS_SEAL_KEY, repr=False)

    @classmethod
    def of(cls, folder: Path) -> Seal:
        """Return the seal of a store; a new one where the store was copied or is a stranger's."""
        path = folder / SEAL_KEY_FILE_NAME
        require_plain_path(path)
        try:
            return cls(_read_or_create_key(path))
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

    def sign_fields(self, kind: str, fields: Mapping[str, object]) -> dict[str, object]:
        """Return JSON fields with their seal among them."""
        return {**fields, SEAL_FIELD: self.sign(kind, _serialize_canonically(fields))}

    def read_fields(self, kind: str, path: Path) -> dict[str, Any] | None:
        """Return the fields of a file; None where it isn't there, is damaged, or was not sealed here."""
        fields = read_json_object(path)
        if fields is None:
            return None

        given_seal = fields.pop(SEAL_FIELD, None)
        if not isinstance(given_seal, str):
            return None

        seal = self.sign(kind, _serialize_canonically(fields))
        if hmac.compare_digest(seal.encode(), given_seal.encode("utf-8", "surrogatepass")):
            return fields
        return None


def read_json_object(path: Path) -> dict[str, object] | None:
    """Return the JSON object of a file of a store; None where there is none, whatever stands there."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(MAX_SEALED_FILE_BYTES))
    except (OSError, ValueError, RecursionError):
        return None

    return content if isinstance(content, dict) else None


def _serialize_canonically(fields: Mapping[str, object]) -> str:
    """Return fields in one form, the same before they are written and after they were read."""
    return json.dumps(fields, sort_keys=True, default=str)


def _read_or_create_key(path: Path) -> bytes:
    """Return the key that a file gives here, which is made where it isn't there yet."""
    with suppress(FileExistsError):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(opened, "wb") as file:
            file.write(secrets.token_bytes(SEAL_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())

    until = time.monotonic() + MAX_WAIT_FOR_KEY_SECONDS
    while True:
        # content and time are those of the same file, also where it is replaced meanwhile
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            content = file.read(SEAL_KEY_BYTES)
            about = os.fstat(file.fileno())

        if len(content) == SEAL_KEY_BYTES:
            break
        if time.monotonic() > until:  # it was cut short: another one takes its place
            path.unlink()
            return _read_or_create_key(path)
        time.sleep(0.01)

    bound_to = f"{_read_machine_id()}\0{os.getuid()}\0{about.st_ino}\0{about.st_ctime_ns}"
    return hmac.new(content, bound_to.encode(), sha256).digest()


@cache
def _read_machine_id() -> str:
    """Return what names this machine; empty where it has no such name, as in some containers."""
    for path in MACHINE_ID_FILES:
        with suppress(OSError, ValueError):
            if name := path.read_text("ascii").strip():
                return name

    return ""
