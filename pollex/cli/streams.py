"""Standard output and error that survive a closed terminal or pipe."""

from __future__ import annotations

import errno
import io
import os
import sys

GONE = {errno.EPIPE, errno.EIO}
"""Of a pipe without a reader, and of a terminal whose window was closed."""


class Lasting(io.FileIO):
    """A stream that discards output when its reader is gone, so that runs go on."""

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
    """Replace standard output and error by lasting streams that escape unsupported characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.flush()
            buffer = io.BufferedWriter(Lasting(stream))  # type: ignore[type-var]
            lasting = io.TextIOWrapper(
                buffer, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering or name == "stderr"
            )
            setattr(sys, name, lasting)
