"""Files that are there whole or not at all."""

import os
from pathlib import Path

from pollex.outputs import note_output


def write_whole(path: Path, content: bytes) -> None:
    """Write a file durably by a draft that replaces it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(path)
        note_output(path)
    finally:
        draft.unlink(missing_ok=True)
