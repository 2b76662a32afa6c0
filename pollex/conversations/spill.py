"""Conversations in memory while they are few, and on disk once they are many."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Sequence
from typing import IO, overload

from pollex.conversations.conversation import Conversation

MEMORY = 100_000_000
"""Bytes of text, about, that are kept in memory."""
TURN_OVERHEAD = 500
"""Bytes that a turn takes beside its text."""


class SpilledList(Sequence[Conversation]):
    """A growing list of conversations that may not fit into memory, read in any order.

    Its temporary file has no name and is removed with the list. Reading one conversation costs one read and one parse.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self._room = memory
        self._kept: list[Conversation] = []
        self._file: IO[bytes] | None = None
        self._places: list[tuple[int, int]] = []
        self._lock = threading.Lock()

    def append(self, conversation: Conversation) -> None:
        """Put one more at the end."""
        if self._file is not None:
            self._places.append(self._written(self._file, conversation))
            return
        self._kept.append(conversation)
        self._room -= sum(turn.size + TURN_OVERHEAD for turn in conversation.turns)
        if self._room < 0:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115
            self._places = [self._written(self._file, kept) for kept in self._kept]
            self._kept = []

    def replace(self, index: int, conversation: Conversation) -> None:
        """Put another in one's place."""
        if self._file is None:
            self._kept[index] = conversation
        else:
            self._places[index] = self._written(self._file, conversation)

    @property
    def on_disk(self) -> bool:
        """Whether the list was moved to disk."""
        return self._file is not None

    def __len__(self) -> int:
        return len(self._kept) + len(self._places)

    @overload
    def __getitem__(self, index: int) -> Conversation: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Conversation]: ...
    def __getitem__(self, index: int | slice) -> Conversation | Sequence[Conversation]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if self._file is None:
            return self._kept[index]
        return self._read(self._file, *self._places[index])

    def _written(self, file: IO[bytes], conversation: Conversation) -> tuple[int, int]:
        """Append a conversation to the file; return its place and length.

        `json` is used because pydantic writes null for NaN in metadata.
        """
        content = json.dumps(conversation.model_dump()).encode("ascii")
        with self._lock:
            place = file.seek(0, 2)
            file.write(content)
        return place, len(content)

    def _read(self, file: IO[bytes], place: int, length: int) -> Conversation:
        with self._lock:
            file.seek(place)
            content = file.read(length)
        return Conversation.model_validate(json.loads(content))
