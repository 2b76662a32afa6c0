"""A ledger of one unit of work, in a file beside the output: whoever takes the unit over finds what was paid for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from pollex.gateway.ledger import LEASE, StoredCall


class Folder(Protocol):
    """Where files of another file system lie; see `formats.places.Place`."""

    @property
    def local(self) -> bool:
        """Whether it is a disk of this machine."""

    @property
    def path(self) -> str:
        """The path on its file system."""

    def __truediv__(self, name: str) -> Folder: ...

    def exists(self) -> bool:
        """Tell whether a file is there."""

    def read(self) -> bytes:
        """Return the file's content."""

    def write(self, content: bytes) -> None:
        """Put a file there, whole or not at all."""

    def names(self) -> list[str]:
        """Return the names of the files in the folder."""

    def make_folder(self) -> None:
        """Make the folder."""


class SegmentLedger:
    """Fulfils `gateway.ledger.Ledger`: a reply is on the disk before anybody reads it.

    On a disk the segment is one file that is appended to; object stores can't append, and have one object a reply.

    Attributes:
        calls: Replies that were recorded here.

    Args:
        folder: Where segments lie.
        unit: The unit's key, which names the segment.
    """

    def __init__(self, folder: Folder, unit: str) -> None:
        self._folder, self._unit = folder, unit
        self._known: dict[str, StoredCall] = {}
        self._file: BinaryIO | None = None
        self.calls = 0
        for content in self._kept():
            for line in content.splitlines():
                self._take_up(line)

    async def lookup(self, key: str) -> StoredCall | None:
        """Return the last record of `key`, None when there is none."""
        return self._known.get(key)

    async def intend(self, key: str, attempt: int, about: Mapping[str, Any], seconds: float = LEASE) -> bool:  # noqa: ARG002
        """Keep nothing: a unit has one worker, and a call that it didn't record when it died is sent again."""
        return True

    async def is_out(self, key: str) -> bool:  # noqa: ARG002
        """See `Ledger`."""
        return False

    async def record(self, key: str, attempt: int, outcome: Mapping[str, Any], raw: str) -> None:
        """Append what came back."""
        line = json.dumps({"key": key, "outcome": {**outcome, "attempt": attempt}, "raw": raw}, ensure_ascii=False)
        self._append(key, f"{line}\n".encode("utf-8", "replace"))
        self._known[key] = StoredCall(key, {**outcome, "attempt": attempt}, raw)
        self.calls += 1

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _kept(self) -> list[bytes]:
        if self._folder.local:
            file = self._folder / f"{self._unit}.jsonl"
            return [file.read()] if file.exists() else []
        segment = self._folder / self._unit
        return [(segment / name).read() for name in segment.names()]

    def _take_up(self, line: bytes) -> None:
        try:
            values = json.loads(line)
        except ValueError:  # cut when its worker was killed: that reply is asked for again
            return
        self._known[values["key"]] = StoredCall(values["key"], values["outcome"], values["raw"])

    def _append(self, key: str, line: bytes) -> None:
        if not self._folder.local:
            (self._folder / self._unit / f"{len(self._known):08}-{key[:16]}.json").write(line)
            return
        if self._file is None:
            self._folder.make_folder()
            self._file = (Path(self._folder.path) / f"{self._unit}.jsonl").open("ab")
            if self._file.tell():
                self._file.write(b"\n")  # ends a line that was cut
        self._file.write(line)
        self._file.flush()
