"""Standard output and error that outlast whoever reads them: a closed terminal, a `| tee` that went."""

from __future__ import annotations

import errno
import io
import os
import sys

GONE = {errno.EPIPE, errno.EIO}
"""Of a pipe without a reader, and of a terminal whose window was closed."""


class Lasting(io.FileIO):
    """A stream that drops what nobody can read any more: a run goes on, or ends in good order, without it."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        super().__init__(stream.fileno(), "w", closefd=False)
        self._stream = stream  # which would close the descriptor when nobody holds it

    def write(self, data: bytes | bytearray | memoryview, /) -> int:  # type: ignore[override]
        """Write, to nowhere once the reader is gone."""
        try:
            return super().write(data)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if error.errno not in GONE:
                raise  # a full disk is told, once
            return len(data)


def outlast() -> None:
    """Put lasting streams in the place of standard output and error; characters they can't show are spelled out."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.flush()
            buffer = io.BufferedWriter(Lasting(stream))  # type: ignore[type-var]
            lasting = io.TextIOWrapper(
                buffer, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering or name == "stderr"
            )
            setattr(sys, name, lasting)
